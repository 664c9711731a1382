"""Index maps that op info can follow: permutations of axes, with axes split in two."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...tvm import Analyzer, tir, tvm
from ...tvm.types import Expr
from .accesses import Extent
from .index_data import decoded, part_of, variables

WHOLE, OUTER, INNER = "whole", "outer", "inner"
Pair = tuple[tuple[Expr, ...], tuple[Expr, ...]]  # an index when recorded, and now


@dataclass(frozen=True)
class Part:
    """What one axis of the new layout holds: an old axis, or one half of it (inner: `factor`)."""

    axis: int
    half: str = WHOLE
    factor: int = 1

    def of(self, index: Sequence[Expr]) -> Expr:
        """The new axis's index from an old one."""
        if self.half == WHOLE:
            return index[self.axis]
        kind = "FloorDiv" if self.half == OUTER else "FloorMod"
        return (kind, index[self.axis], self.factor)


@dataclass(frozen=True)
class LayoutMap:
    """Old axes -> new axes."""

    parts: tuple[Part, ...]

    @classmethod
    def identity(cls, ndim: int) -> LayoutMap:
        """The layout as it was."""
        return cls(tuple(map(Part, range(ndim))))

    @property
    def is_identity(self) -> bool:
        """Whether nothing changed."""
        return self == LayoutMap.identity(len(self.parts))

    @property
    def permutation(self) -> tuple[int, ...] | None:
        """The old axis at each new position, if no axis is split."""
        if any(part.half != WHOLE for part in self.parts):
            return None
        return tuple(part.axis for part in self.parts)

    def positions(self, axis: int) -> tuple[int, ...]:
        """Where an old axis is now: one position, or two if it was split."""
        return tuple(i for i, part in enumerate(self.parts) if part.axis == axis)

    def shape(self, old: Sequence[Extent]) -> tuple[Extent, ...]:
        """The new extents."""
        extents = {WHOLE: lambda p: old[p.axis], OUTER: lambda p: old[p.axis] // p.factor,
                   INNER: lambda p: p.factor}  # fmt: skip
        return tuple(extents[part.half](part) for part in self.parts)

    def letters(self, layout: str) -> str | None:
        """`NCHW` -> `NHWC`, `NCHW16c`; None for a layout that has split axes already."""
        if not layout.isalpha() or len(set(layout.upper())) != len(layout):
            return None
        if len({p.axis for p in self.parts}) != len(layout):
            return None
        names = {
            WHOLE: lambda p: layout[p.axis],
            OUTER: lambda p: layout[p.axis],
            INNER: lambda p: f"{p.factor}{layout[p.axis].lower()}",
        }
        return "".join(names[part.half](part) for part in self.parts)

    def inverse(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """The old index of a new one."""
        ndim = len({part.axis for part in self.parts})
        found: list[Expr] = [0] * ndim
        for position, part in enumerate(self.parts):
            term = index[position]
            if part.half == OUTER:
                term = ("Mul", term, part.factor)
            known = found[part.axis]
            found[part.axis] = term if known == 0 else ("Add", known, term)
        return tuple(found)


class Prover:
    """Proves index expressions equal, given the variables' extents."""

    def __init__(self, extents: Mapping[str, int]) -> None:
        self.analyzer = Analyzer()
        self.vars: dict[Expr, Any] = {name: tir.Var(name, "int32") for name in extents}
        for name, extent in extents.items():
            if extent > 0:  # 0: not known when compiling
                self.analyzer.bind(self.vars[name], tvm.ir.Range(0, extent))

    def equal(self, one: Expr, other: Expr) -> bool:
        """Whether they are equal whatever the variables are."""
        if one == other:
            return True
        env = self._where({*variables(one), *variables(other)})
        return bool(self.analyzer.can_prove_equal(decoded(one, env), decoded(other, env)))

    def _where(self, names: Collection[str]) -> MutableMapping[Expr, Any]:
        """The variables; an axis of which one of the names sees a part is in that part for all."""
        ranges: dict[str, tuple[int, int]] = {}
        for name in names:
            if (found := part_of(name)) is not None:
                axis, low, high = found
                first, last = ranges.get(axis, (low, high))
                ranges[axis] = (max(low, first), min(high, last))
        if not ranges:
            return self.vars
        env = dict(self.vars)
        for axis, (low, high) in ranges.items():
            step = tir.Var(axis, "int32")
            self.analyzer.bind(step, tvm.ir.Range(0, max(high - low, 1)))
            same = [n for n in names if (part := part_of(n)) is not None and part[0] == axis]
            env |= dict.fromkeys([axis, *same], step + low)
        return env


def infer(
    pairs: Sequence[Pair],
    was: Sequence[Extent],
    now: Sequence[Extent],
    prover: Prover,
) -> LayoutMap | None:
    """The one map that turns every recorded index into the present one; None if there is none, or
    more than one.
    """
    same = LayoutMap.identity(len(was))
    if tuple(was) == tuple(now) and _fits(same, pairs, prover):
        return same
    if None in was or None in now:
        return None
    options = [
        [part for part in _candidates(was, extent) if _part_fits(part, j, pairs, prover)]
        for j, extent in enumerate(now)
    ]
    found = [LayoutMap(parts) for parts in _covers(options, len(was))]
    # Axes of one element may stand anywhere; other differences would be guesses.
    kinds = {tuple(p for p in m.parts if was[p.axis] != 1) for m in found}
    return found[0] if len(kinds) == 1 else None


def _fits(layout: LayoutMap, pairs: Sequence[Pair], prover: Prover) -> bool:
    return all(_part_fits(part, j, pairs, prover) for j, part in enumerate(layout.parts))


def _part_fits(part: Part, position: int, pairs: Sequence[Pair], prover: Prover) -> bool:
    return all(prover.equal(part.of(old), new[position]) for old, new in pairs)


def _candidates(was: Sequence[Any], extent: Any) -> Iterator[Part]:
    """What an axis of this extent may hold."""
    for axis, old in enumerate(was):
        if old == extent:
            yield Part(axis)
        if isinstance(old, str) or isinstance(extent, str):
            continue  # of a symbol's parts nothing is known
        if extent and old % extent == 0 and 1 < old // extent < old:
            yield Part(axis, OUTER, old // extent)
        if extent and old % extent == 0 and 1 < extent < old:
            yield Part(axis, INNER, extent)


def _covers(options: Sequence[Sequence[Part]], ndim: int) -> Iterator[tuple[Part, ...]]:
    """Every choice of one part a position that holds each old axis once: whole, or both halves."""

    def complete(parts: tuple[Part, ...]) -> bool:
        for axis in range(ndim):
            mine = sorted((p.half, p.factor) for p in parts if p.axis == axis)
            halves = [half for half, _ in mine]
            if halves != [WHOLE] and (halves != [INNER, OUTER] or mine[0][1] != mine[1][1]):
                return False
        return True

    def choose(done: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
        if len(done) == len(options):
            if complete(done):
                yield done
            return
        for part in options[len(done)]:
            clash = any(
                p.axis == part.axis and (WHOLE in (p.half, part.half) or p.half == part.half)
                for p in done
            )
            if not clash:
                yield from choose((*done, part))

    yield from choose(())
