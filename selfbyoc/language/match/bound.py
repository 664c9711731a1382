"""A match in the making, and what may go on with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...graph import Graph, OpCall, Value
from ...tvm.types import Attr
from ..growing import Elementwise, Repeat
from ..nodes import Node

Input = tuple[OpCall, int]  # an op, and the position among its inputs


@dataclass(frozen=True)
class Bound:
    """A match in the making: which value each argument stands for, and the ops taken so far."""

    args: Mapping[str, Value] = field(default_factory=dict)
    ops: tuple[OpCall, ...] = ()
    parts: Mapping[Node, OpCall] = field(default_factory=dict)  # a node -> the op it took
    values: Mapping[Node, Value] = field(default_factory=dict)  # choices, and nodes that grow
    operands: tuple[tuple[str, Value], ...] = ()  # what ops of chains read besides them
    # How many ops a chain has, and how many blocks a repetition
    counts: tuple[tuple[Elementwise | Repeat, int], ...] = ()
    # Which argument each input of an op is: one value may be several of them
    roles: Mapping[Input, str] = field(default_factory=dict)
    at: Input | None = None  # the input that is matched now
    level: int = 0  # ops entered whose inputs are not matched yet
    reader: str = ""  # the innermost of these


class Matching(Protocol):
    """What a pattern that grows asks of the matcher (matcher.py), which asks it for its chains."""

    graph: Graph
    blocks: dict[tuple[Node, int], Node]

    def missed(self, bound: Bound, near: int, *difference: Attr) -> None:
        """A difference, and how near it is."""

    def match(self, node: Node, value: Value, bound: Bound) -> Iterator[Bound]:
        """Every way in which `node` fits `value`, given what is bound already."""
