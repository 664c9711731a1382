"""Lowered functions on elements, as AlterOpImpl puts them into a module, as the ops that they are.

    out[v] = max(x[v] + b[v[1:]], 0)  ->  relu(add(x, b))

A function that stores one element for each element that it loads means the same in any layout. What
it does not store is undefined, so that the ops may compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.rewriting import Editor
from ...ops.vocabulary import KINDS, is_elementwise_kind
from ...tvm import TensorLoad, dtype_of, param_buffers, region_buffer, structural_equal, tir, walk
from ...tvm.types import Buffer, Expr, PrimExpr, PrimFunc

_BINARY = {
    tir.Add: "add", tir.Sub: "subtract", tir.Mul: "multiply", tir.Div: "divide",
    tir.Max: "maximum", tir.Min: "minimum",
}  # fmt: skip


class _NoElements(Exception):
    """What a function computes is none of these ops."""


def as_ops(func: PrimFunc, args: Sequence[Expr], to: Editor) -> Expr | None:
    """What a function computes of tensors; None of one that is not on elements."""
    nodes: list[Any] = []
    walk(func.body, nodes.append)
    stores = [node for node in nodes if isinstance(node, tir.BufferStore)]
    *inputs, output = param_buffers(func)
    if len(stores) != 1 or len(inputs) != len(args) or not stores[0].buffer.same_as(output):
        return None
    pairs = list(zip(inputs, args, strict=True))
    try:
        return _Reading(list(stores[0].indices), pairs, to).tensor(stores[0].value)
    except _NoElements:
        return None


class _Reading:
    """The element that is stored at `where`, as ops on whole tensors."""

    def __init__(
        self, where: Sequence[PrimExpr], inputs: Sequence[tuple[Buffer, Expr]], to: Editor
    ) -> None:
        self.where, self.inputs, self.to = where, inputs, to

    def tensor(self, expr: PrimExpr) -> Expr:
        """An expression of one element as a tensor of all."""
        if isinstance(expr, TensorLoad):
            return self._loaded(expr)
        if isinstance(expr, (tir.FloatImm, tir.IntImm)):
            return self.to.constant(np.asarray(expr.value, dtype_of(expr)))
        if isinstance(expr, tir.Cast):
            return self.to.emit("cast", self.tensor(expr.value), dtype=dtype_of(expr))
        if type(expr) in _BINARY:
            return self._binary(_BINARY[type(expr)], expr.a, expr.b)
        return self._called(expr)

    def _binary(self, kind: str, left: PrimExpr, right: PrimExpr) -> Expr:
        if kind == "maximum" and isinstance(right, tir.FloatImm) and right.value == 0:
            return self.to.emit("relu", self.tensor(left))
        return self.to.emit(kind, self.tensor(left), self.tensor(right))

    def _called(self, expr: PrimExpr) -> Expr:
        name = str(getattr(getattr(expr, "op", None), "name", "")).rpartition(".")[2]
        is_known = name in KINDS and is_elementwise_kind(name) and not KINDS[name].attrs
        if not is_known or KINDS[name].inputs != len(expr.args):
            raise _NoElements
        return self.to.emit(name, *map(self.tensor, expr.args))

    def _loaded(self, load: PrimExpr) -> Expr:
        """An input at the same place; one of fewer axes, or of extent 1, is broadcast."""
        if len(load.indices) > len(self.where):  # a diagonal, or one element of many
            raise _NoElements
        buffer = region_buffer(load)
        arg = next((arg for known, arg in self.inputs if known.same_as(buffer)), None)
        own = self.where[len(self.where) - len(load.indices) :]
        pairs = zip(load.indices, own, buffer.shape, strict=True)
        if arg is None or not all(_is_there(*pair) for pair in pairs):
            raise _NoElements
        return arg


def _is_there(index: PrimExpr, own: PrimExpr, extent: PrimExpr) -> bool:
    """Whether an index is that of the result, or the only one there is."""
    is_first = isinstance(index, tir.IntImm) and index.value == 0
    return structural_equal(index, own) or (
        is_first and isinstance(extent, tir.IntImm) and extent.value == 1
    )
