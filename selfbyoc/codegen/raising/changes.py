"""A tensor from one layout into another, as ops of the graph: transposes and reshapes, which both
TVMs compute and every pass knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...graph import OpCall, Value
from ...ops.layout_text import parts_of
from ...tvm.types import Attr
from ..info.layout_map import INNER, OUTER, WHOLE, LayoutMap, Part

Step = tuple[str, dict[str, Attr], tuple[Any, ...]]  # kind, attributes, shape of its result


def steps(shape: Sequence[Any], was: LayoutMap, now: LayoutMap) -> Iterator[Step]:
    """From one layout of a tensor, whose own axes are `shape`, to another."""
    if was == now:
        return
    if set(was.parts) == set(now.parts):
        yield from _turned(was, now, shape)
        return
    whole = LayoutMap.identity(len(shape))
    if was != whole:
        yield from _turned(was, _in_order(was), shape)
        if _is_split(was):
            yield "reshape", {"shape": tuple(shape)}, tuple(shape)
    if now != whole:
        if _is_split(now):
            apart = _in_order(now).shape(shape)
            yield "reshape", {"shape": apart}, apart
        yield from _turned(_in_order(now), now, shape)


def _turned(was: LayoutMap, now: LayoutMap, shape: Sequence[Any]) -> Iterator[Step]:
    axes = tuple(was.parts.index(part) for part in now.parts)
    if axes != tuple(range(len(axes))):
        yield "transpose", {"axes": axes}, now.shape(shape)


def _is_split(layout: LayoutMap) -> bool:
    return layout.permutation is None


def _in_order(layout: LayoutMap) -> LayoutMap:
    """Its axes and halves of axes in the order of the tensor's own."""
    halves = [WHOLE, OUTER, INNER]
    return LayoutMap(tuple(sorted(layout.parts, key=lambda p: (p.axis, halves.index(p.half)))))


def from_letters(plain: str, layout: str) -> LayoutMap:
    """`NCHW`, `NCHW4c` as a map; ValueError for what is no layout of `plain`'s axes, and for one
    with several blocks of an axis.
    """
    parts = parts_of(layout, plain)
    factors = {axis: size for axis, size in parts or () if size}
    if parts is None or len(parts) != len(plain) + len(factors):
        raise ValueError(f"{layout!r} is no layout of {plain} with one block of an axis at most")
    return LayoutMap(
        tuple(
            Part(axis, INNER if size else OUTER, factors[axis]) if axis in factors else Part(axis)
            for axis, size in parts
        )
    )


@dataclass
class Calls:
    """The ops of a graph under construction. Each change of a value's layout is made once."""

    ops: list[OpCall] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    changed: dict[tuple[Value, LayoutMap], Value] = field(default_factory=dict)

    def add(self, name: str, kind: str, inputs: Sequence[Value], attrs: Any, outputs: Any) -> None:
        """One more op."""
        self.names.add(name)
        self.ops.append(OpCall(kind, tuple(inputs), attrs, tuple(outputs), name))

    def one(self, kind: str, value: Value, attrs: Any, result: tuple[Any, str]) -> Value:
        """An op of one input that stands in no function: it is named after what it reads."""
        name = base = f"{kind}_of_{value.name.replace('[', '_').rstrip(']')}"
        count = 1
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        made = Value(*result, name=name)
        self.add(name, kind, [value], attrs, [made])
        return made

    def change(self, value: Value, shape: Sequence[Any], was: LayoutMap, now: LayoutMap) -> Value:
        """The value in another layout."""
        if (value, now) not in self.changed:
            found = value
            for kind, attrs, extents in steps(shape, was, now):
                found = self.one(kind, found, attrs, (extents, value.dtype))
            self.changed[value, now] = found
        return self.changed[value, now]
