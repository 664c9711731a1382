"""Where an input of an op comes from: the edges between the ops of a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

OP, PARAM, CONSTANT, DATA, NOT_KNOWN = "op", "param", "constant", "data", "not known"


@dataclass(frozen=True)
class Source:
    """What an op, or a result of the function, reads.

    kind   "op": output `index` of the op `name`; "param": parameter `index` of the function;
           "constant": `value`, in all of its elements; "data": array `index` of those that the
           function holds itself (Relay); "not known": an input that recording could not follow
    """

    kind: str
    index: int = 0
    name: str = ""
    value: Any = None

    def __repr__(self) -> str:
        if self.kind == OP:
            return f"{self.name}[{self.index}]" if self.index else self.name
        if self.kind == CONSTANT:
            return repr(self.value)
        return f"{self.kind} {self.index}" if self.kind != NOT_KNOWN else NOT_KNOWN

    def renamed(self, names: Mapping[str, str]) -> Source:
        """The same in a function whose ops have other names."""
        return replace(self, name=names[self.name]) if self.kind == OP else self


UNFOLLOWED = Source(NOT_KNOWN)


def of_op(name: str, index: int = 0) -> Source:
    """An output of an op."""
    return Source(OP, index, name)


def of_param(index: int) -> Source:
    """A parameter of the function."""
    return Source(PARAM, index)


def of_constant(value: float) -> Source:
    """A constant that the function's code holds."""
    return Source(CONSTANT, value=value)


def to_plain(source: Source) -> dict[str, Any] | None:
    """As JSON has it: {"op": "split", "output": 1}, {"param": 0}, {"constant": 2.0}, {"data": 0},
    None.
    """
    if source.kind == OP:
        return {OP: source.name, "output": source.index}
    if source.kind == CONSTANT:
        return {CONSTANT: source.value}
    return None if source.kind == NOT_KNOWN else {source.kind: source.index}


def from_plain(data: Any) -> Source:
    """The inverse; KeyError or ValueError for anything else."""
    if data is None:
        return UNFOLLOWED
    if OP in data:
        return of_op(str(data[OP]), int(data["output"]))
    if CONSTANT in data:
        return of_constant(data[CONSTANT])
    ((kind, index),) = data.items()
    if kind not in (PARAM, DATA):
        raise ValueError(f"{kind!r} is no source of a value")
    return Source(str(kind), int(index))
