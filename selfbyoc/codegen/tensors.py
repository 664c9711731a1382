"""The tensors of a graph while it is stacked: of values, and the stages of ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph import OpCall, OpGraph, Value
from ..tir.te_blocks import te_order
from ..tvm import te, tir
from ..tvm.types import Tensor

if TYPE_CHECKING:
    from ..language.match.match import Match


class Tensors:
    """What is computed so far."""

    def __init__(self, graph: OpGraph, match: Match) -> None:
        self.graph, self.match, self.composite = graph, match.own, match.composite
        self.tensors: dict[Value, Any] = {}
        self.stages: dict[OpCall, list[Any]] = {}  # the te operations of an op
        self.seen: set[Any] = set()
        self.params: list[Any] = []
        self.described: list[OpCall] = []

    def tensor(self, value: Value) -> Tensor:
        """A value's tensor; of a constant of one element one that is made when it is asked for."""
        if value.is_constant and value.scalar is not None and value not in self.tensors:
            self.tensors[value] = constant(value)
        assert value in self.tensors, f"{value!r} is read before it is computed"
        return self.tensors[value]

    def own_stages(self, call: OpCall, tensors: Sequence[Tensor]) -> None:
        """What stands under the tensors and no op has yet is this op's."""
        self.stages[call] = [op for op in te_order(tensors) if op not in self.seen]
        self.seen.update(self.stages[call])
        if call.sources or len(self.stages[call]):
            self.described.append(call)


def constant(value: Value) -> Tensor:
    return te.compute(value.shape, lambda *_: tir.const(value.scalar, value.dtype), name="constant")
