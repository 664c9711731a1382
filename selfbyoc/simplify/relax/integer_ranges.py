"""Relax: what the ranges of integers decide.

Importers write where(i < 0, i + n, i) for every index, and exporters arange(n) >= 0 into masks.
With static sizes such ops are constants; with open ones they are kernels in front of the first
layer, ten of MiniLM's, which take as long as a layer of one token.

- A choice whose condition is certain is what is chosen; a sum with 0, True and x: the other one.
- take by 0, 1, ... n - 1 of n elements: all of them. By one number, of a constant: that row.
- take of a constant by a slice of a constant is a slice of what all of that takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from ...ir.relax import Constant
from ...ir.relax.emit import constant
from ...ir.rewriting import are_same
from ...tvm import constant_numpy, tir
from ...tvm.types import Expr, PrimExpr, Shape
from .. import intervals
from ..intervals import FALSE, MOST, OF_TWO, TRUE, Interval
from .exprs import is_op, open_shape, plain_numbers

# Ops that give elements of their first input; the first few in the same order, and all of them.
_IN_ORDER = ("expand_dims", "reshape", "squeeze", "flatten")
_MOVES = (*_IN_ORDER, "broadcast_to", "gather_elements", "permute_dims", "strided_slice", "take")
_OF_ELEMENTS = ("where", *OF_TWO)
_NEUTRAL = {"add": FALSE, "subtract": FALSE, "logical_and": TRUE, "logical_or": FALSE}


@relax.expr_functor.mutator
class WhatRangesDecide(relax.PyExprMutator):
    """Ops on integers as what they certainly are."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Interval | None] = {}
        self.rewrites: dict[str, Callable[[Any, Any], Any | None]] = {
            "where": self._chosen,
            "take": self._taken,
            "broadcast_to": lambda call, _: call.args[0],
            **dict.fromkeys(_NEUTRAL, self._without_neutral),
        }

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call, or what it is."""
        visited: Any = super().visit_call_(call)
        shape = open_shape(call)
        if not shape:  # nobody knows what would be left of it
            return visited
        done = self._before_broadcast(visited)
        rewrite = self.rewrites.get(getattr(done.op, "name", "").removeprefix("relax."))
        made = None if rewrite is None else rewrite(done, shape)
        if made is None or made.ty.dtype != call.ty.dtype:
            made = done
        if made is visited or are_same(open_shape(made), shape):
            return made
        if is_op(done, "broadcast_to"):
            return done
        return relax.op.broadcast_to(made if made is not done else self.builder_.emit(made), shape)

    def _before_broadcast(self, call: Expr) -> Expr:
        """An elementwise op of what its inputs were before they were broadcast."""
        if getattr(call.op, "name", "").removeprefix("relax.") not in _OF_ELEMENTS:
            return call
        made = [self._bound(arg) for arg in call.args]
        args = [
            m.args[0] if is_op(m, "broadcast_to") else arg
            for m, arg in zip(made, call.args, strict=True)
        ]
        if all(new is old for new, old in zip(args, call.args, strict=True)):
            return call
        made = relax.Call(call.op, args, call.attrs, call.ty_args, call.span)
        return self.builder_.normalize(made)

    def _chosen(self, call: Expr, _: Shape) -> Expr | None:
        condition, yes, no = call.args
        return {TRUE: yes, FALSE: no}.get(self._range(condition) or (0, 1))

    def _without_neutral(self, call: Expr, _: Shape) -> Expr | None:
        name = call.op.name.removeprefix("relax.")
        for n in (1, 0) if name != "subtract" else (1,):
            if self._range(call.args[n]) == _NEUTRAL[name]:
                return call.args[1 - n]
        return None

    def _taken(self, call: Expr, shape: Shape) -> Expr | None:
        data, index = call.args
        extents = open_shape(data)
        if not extents or call.attrs.axis is None:
            return None
        axis = int(call.attrs.axis) % len(extents)
        count = self._counted(index)
        if count is not None and are_same([count], [extents[axis]]):
            return self.builder_.emit(relax.op.reshape(data, shape))
        array, found = _array(self._bound(data)), self._range(index)
        if array is None or found is None or not 0 <= found[0] <= found[1] < extents[axis]:
            return None
        if found[0] == found[1]:
            row = np.take(array, [found[0]], axis)
            ones = [1] * len(open_shape(index))
            return constant(row.reshape(*row.shape[:axis], *ones, *row.shape[axis + 1 :]))
        return self._slice_of_all(array, axis, index)

    def _slice_of_all(self, array: np.ndarray, axis: int, index: Expr) -> Expr | None:
        """A constant taken by a slice of a constant, if that makes it no larger."""
        made = self._bound(index)
        indices = _array(made.args[0]) if is_op(made, "strided_slice") else None
        if indices is None or indices.size > array.shape[axis]:
            return None
        everything = constant(np.take(array, indices, axis))
        axes = [axis + n % indices.ndim for n in plain_numbers(made.args[1])]
        told = made.attrs.assume_inbound
        return self.builder_.emit(
            relax.op.strided_slice(everything, axes, *made.args[2:], assume_inbound=told)
        )

    def _bound(self, expr: Expr) -> Expr:
        """What a variable stands for; behind those that stand for others."""
        while isinstance(expr, relax.Var):
            expr = self.lookup_binding(expr)
        return expr

    def _counted(self, expr: Expr) -> PrimExpr | None:
        """n where the elements are 0, 1, ... n - 1 in this order."""
        made = self._bound(expr)
        if self._range(expr) is None:  # integers that begin again at their least, say
            return None
        if any(is_op(made, name) for name in (*_IN_ORDER, "astype")):
            return self._counted(made.args[0])
        if not is_op(made, "arange") or [_number(made.args[n]) for n in (0, 2)] != [0, 1]:
            return None
        return getattr(made.args[1], "value", made.args[1])  # TVM 0.26 has a PrimValue around it

    def _range(self, expr: Expr) -> Interval | None:
        """Between which numbers the elements are; None where nothing is known."""
        made = self._bound(expr)
        if isinstance(made, Constant):
            return intervals.of_array(constant_numpy(made))
        if not isinstance(expr, relax.Var):
            return None
        if expr not in self.known:
            dtype = str(getattr(expr.ty, "dtype", ""))
            is_whole = dtype == "bool" or dtype.removeprefix("u").startswith("int")
            found = self._of_call(made) if is_whole and isinstance(made, relax.Call) else None
            self.known[expr] = intervals.within(found, dtype) if is_whole else None
        return self.known[expr]

    def _of_call(self, call: Expr) -> Interval | None:
        name = getattr(call.op, "name", "").removeprefix("relax.")
        if name in _MOVES:
            return self._range(call.args[0])
        if name == "arange":
            start, stop, step = map(_number, call.args)
            last = MOST if stop is None else max(stop - 1, start or 0)
            return None if start is None or step is None or step < 1 else (start, last)
        if name == "astype":
            found = self._range(call.args[0])
            return intervals.as_bool(found) if str(call.attrs.dtype) == "bool" else found
        if name == "where":
            return intervals.union([self._range(arg) for arg in call.args[1:]])
        if name not in OF_TWO:
            return None
        a, b = map(self._range, call.args)
        return None if a is None or b is None else OF_TWO[name](a, b)


def _array(expr: Expr) -> np.ndarray | None:
    return constant_numpy(expr) if isinstance(expr, Constant) else None


def _number(expr: PrimExpr) -> int | None:
    """The integer that an argument is; None for an expression of open sizes."""
    value = getattr(expr, "value", expr)  # a PrimValue's
    value = getattr(value, "value", value) if isinstance(value, tir.IntImm) else value
    return value if isinstance(value, int) else None
