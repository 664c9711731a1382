"""The loops of a scheduled function with its stages in them, as plain records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

SERIAL, PARALLEL, VECTORIZED, UNROLLED = "serial", "parallel", "vectorized", "unrolled"


@dataclass(frozen=True)
class Stage:
    """One block. `runs` counts its iterations, `covers` the different elements among them."""

    name: str  # without the `_init` and `_update` that decomposing a reduction adds
    op: str  # the op that it belongs to; "" where the composite's own compute names no op
    role: str  # "sum", "max", "reduce", "copy", "padded copy" or "compute"
    writes: str
    reads: tuple[str, ...] = ()
    reduces: tuple[tuple[str, int], ...] = ()  # reduction axes and their extents
    domain: int = 1
    runs: int = 1
    covers: int = 1
    exact: bool = True  # False: `runs` and `covers` are at most this
    products: int = 0  # multiply-adds of a run

    @property
    def recompute(self) -> float:
        """Iterations for each different element; 1.0 where nothing is computed twice."""
        return self.runs / self.covers if self.covers else 1.0

    def __str__(self) -> str:
        return f"store {self.writes}" if self.role == "copy" else self.name


@dataclass(frozen=True)
class Loop:
    """One loop; `axis` says what it runs over, in the terms of the last stage under it."""

    var: str
    extent: int
    kind: str
    axis: str = ""
    body: tuple[Loop | Stage, ...] = field(default=(), repr=False)
    is_cut: bool = False  # it ends where a number says, which is computed before it

    @property
    def turns(self) -> str:
        """How many, for the drawing."""
        return f"at most {self.extent}" if self.is_cut else str(self.extent)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages under the loop, in order."""
        return tuple(stage for stage, _ in under(self.body))

    def __str__(self) -> str:
        return f"{self.axis or self.var} ({self.kind}, {self.extent})"


@dataclass(frozen=True)
class Nest:
    """A function's body: loops and stages, in program order."""

    body: tuple[Loop | Stage, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, in program order."""
        return tuple(stage for stage, _ in under(self.body))

    def loops_of(self, name: str) -> tuple[Loop, ...]:
        """The loops above the first stage of this name, outermost first."""
        return next(loops for stage, loops in under(self.body) if stage.name == name)

    def __str__(self) -> str:
        return "\n".join(lines(self))


def under(
    body: tuple[Loop | Stage, ...], above: tuple[Loop, ...] = ()
) -> Iterator[tuple[Stage, tuple[Loop, ...]]]:
    """Every stage with the loops above it, in program order."""
    for node in body:
        if isinstance(node, Stage):
            yield node, above
        else:
            yield from under(node.body, (*above, node))


@dataclass(frozen=True)
class Row:
    """One line of the drawing: a scope of loops, or a stage with the loops that are its alone."""

    depth: int
    loops: tuple[Loop, ...]
    stage: Stage | None = None


def rows(nest: Nest) -> list[Row]:
    """The drawing: unit loops are left out, neighbours of one kind share a line.

    The loops of a single stage are part of its line, but for a parallel one.
    """
    return list(_rows(nest.body, 0))


def _rows(body: tuple[Loop | Stage, ...], depth: int) -> Iterator[Row]:
    for node in body:
        scope, inner = _scope(node)
        if scope:
            yield Row(depth, scope)
            yield from _rows(inner, depth + 1)
        elif len(stages := _stages(node)) == 1:
            (stage,) = stages
            loops = next(loops for _, loops in under((node,)))
            yield Row(depth, tuple(loop for loop in loops if loop.extent > 1), stage)
        else:
            yield from _rows(inner, depth)


def _stages(node: Loop | Stage) -> tuple[Stage, ...]:
    return (node,) if isinstance(node, Stage) else node.stages


def _scope(node: Loop | Stage) -> tuple[tuple[Loop, ...], tuple[Loop | Stage, ...]]:
    """The loops that are drawn as one scope from here on, and what is in it."""
    found: list[Loop] = []
    body: tuple[Loop | Stage, ...] = (node,)
    while len(body) == 1 and isinstance(loop := body[0], Loop):
        shared = loop.kind == PARALLEL or len(loop.stages) > 1
        if not shared or (found and loop.extent > 1 and loop.kind != found[0].kind):
            break
        if loop.extent > 1:
            found.append(loop)
        body = loop.body
    return tuple(found), body


def lines(nest: Nest) -> list[str]:
    """The drawing as text."""
    drawn = rows(nest)
    width = max((4 * r.depth + len(str(r.stage)) for r in drawn if r.stage), default=0)
    return [_line(row, width + 2) for row in drawn]


def _line(row: Row, width: int) -> str:
    start = "    " * row.depth
    if row.stage is None:
        return f"{start}{scope_text(row.loops)}:"
    return f"{start}{row.stage}".ljust(width) + stage_text(row.stage, row.loops)


def scope_text(loops: tuple[Loop, ...]) -> str:
    """`parallel y of relu_1 (16)`."""
    names = [loop.axis or loop.var for loop in loops]
    owners = {name.partition(" of ")[2] for name in names}
    if len(owners) == 1 and "" not in owners:
        text = ", ".join(name.partition(" of ")[0] for name in names) + f" of {owners.pop()}"
    else:
        text = ", ".join(names)
    word = {SERIAL: "for", PARALLEL: "parallel", UNROLLED: "unrolled", VECTORIZED: "vector"}
    kind = word.get(loops[0].kind, loops[0].kind)
    return f"{kind} {text} ({' x '.join(loop.turns for loop in loops)})"


def stage_text(stage: Stage, loops: tuple[Loop, ...]) -> str:
    """What a stage does, and in which loops of its own."""
    what = {
        "copy": f"from {', '.join(stage.reads)}",
        "padded copy": f"padded copy of {', '.join(stage.reads)}",
        "compute": f"from {', '.join(stage.reads) or 'nothing'}",
    }.get(stage.role)
    if what is None:
        axes = ", ".join(name for name, _ in stage.reduces)
        extents = " x ".join(str(extent) for _, extent in stage.reduces)
        what = f"{stage.role} over {axes} ({extents}) of {', '.join(stage.reads)}"
    return "; ".join([what, *_own_loops(loops)])


def _own_loops(loops: tuple[Loop, ...]) -> list[str]:
    known = (SERIAL, PARALLEL, VECTORIZED, UNROLLED)
    found = [f"{loop.kind} {loop.extent}" for loop in loops if loop.kind not in known]  # GPUs
    for kind, text in ((PARALLEL, "parallel {}"), (SERIAL, "for {}"), (UNROLLED, "unrolled {}"),
                       (VECTORIZED, "{} lanes")):  # fmt: skip
        extents = [loop.turns for loop in loops if loop.kind == kind]
        if extents:
            found.append(text.format(" x ".join(extents)))
    return found
