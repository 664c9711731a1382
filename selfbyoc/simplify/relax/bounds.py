"""Relax's ONNX importer lowers Clip while it imports (0.27): read back, as the ops that it is.

`x` clipped to constants arrives as call_tir of a maximum and a minimum, each bound as
where(isnan(bound), inf, bound). No pattern can see an op in a lowered function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tvm import relax

from ...ir.relax import Constant
from ...tvm import TensorLoad, constant_numpy, param_buffers, region_buffer, tir, tvm, walk
from ...tvm.types import Expr, PrimExpr

_OPS = {tir.Max: relax.op.maximum, tir.Min: relax.op.minimum}


@relax.expr_functor.mutator
class BoundsAreOps(relax.PyExprMutator):
    """maximum and minimum with a constant in place of the calls of lowered functions."""

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        done = super().visit_call_(call)
        if not isinstance(done.op, tvm.ir.Op):
            return done
        if done.op.name == "relax.where":
            return self._checked_bound(done)
        return self._lowered(done) if done.op.name == "relax.call_tir" else done

    def _checked_bound(self, call: relax.Call) -> relax.Expr:
        """The bound itself, where it is a constant that is a number."""
        condition, _, bound = call.args
        check = self._behind(condition)
        is_check = isinstance(check, relax.Call) and check.op.name == "relax.isnan"
        if not is_check or not check.args[0].same_as(bound):
            return call
        return call if (value := _number(bound)) is None or math.isnan(value) else bound

    def _lowered(self, call: relax.Call) -> relax.Expr:
        """A call of a function that is one maximum or minimum with a single number."""
        args = list(call.args[1].fields) if isinstance(call.args[1], relax.Tuple) else []
        func = self.builder_.get()[call.args[0]]
        if len(call.args) != 2 or not isinstance(func, tir.PrimFunc) or not args:
            return call
        found = _bound(func, len(args))
        if found is None:
            return call
        kind, value = found
        bound = self._behind(args[1]) if value is None else relax.const(value, args[0].ty.dtype)
        return call if _number(bound) is None else _OPS[kind](args[0], bound)

    def _behind(self, expr: Expr) -> Expr:
        found = self.lookup_binding(expr) if isinstance(expr, relax.Var) else None
        return expr if found is None else found


def _number(expr: Expr) -> float | None:
    """The value of a constant of one element."""
    array = constant_numpy(expr) if isinstance(expr, Constant) else None
    return None if array is None or array.size != 1 else float(array.reshape(-1)[0])


def _bound(func: tir.PrimFunc, count: int) -> tuple[Callable[..., PrimExpr], float | None] | None:
    """(Max or Min, the number) of `out[i] = max(x[i], number)`; no number: the second argument."""
    nodes: list[Any] = []
    walk(func.body, nodes.append)
    stores = [node for node in nodes if isinstance(node, tir.BufferStore)]
    if len(stores) != 1 or type(stores[0].value) not in _OPS:
        return None
    (store,) = stores
    buffers = param_buffers(func)
    if count > 2 or len(buffers) != count + 1:
        return None
    left, right = store.value.a, store.value.b
    if not _reads(left, buffers[0]) or not store.buffer.same_as(buffers[-1]):
        return None
    if not all(a.same_as(b) for a, b in zip(left.indices, store.indices, strict=True)):
        return None
    if count == 1:
        return (type(store.value), float(right.value)) if isinstance(right, tir.FloatImm) else None
    return (type(store.value), None) if _reads(right, buffers[1]) else None


def _reads(expr: PrimExpr, buffer: Expr) -> bool:
    """Whether it is an element of the buffer."""
    return isinstance(expr, TensorLoad) and region_buffer(expr).same_as(buffer)
