"""Relax: levels as kernels read them (partition/levels.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from .._tvm import constant_numpy
from ..ir._relax import Constant
from ..ir._relax_emit import constant
from ._relax_exprs import is_op
from .levels import MOVES, alike, one_number


@relax.expr_functor.mutator
class LevelsAsRead(relax.PyExprMutator):
    """Each reader has its own dequantize; moves are of levels; zero points are numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[Any] = set()  # the dequantised values that somebody reads

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call over its own dequantised values, or of levels instead."""
        done = super().visit_call_(call)
        if is_op(done, "quantize"):
            moved = self._of_levels(done)
            done = done if moved is None else moved
        if is_op(done, "quantize") or is_op(done, "dequantize"):
            done = _with_number(done)
        args = [self._own(arg) for arg in done.args]
        if all(new is old for new, old in zip(args, done.args, strict=True)):
            return done
        return relax.Call(done.op, args, done.attrs, done.ty_args, done.span)

    def _own(self, arg: Any) -> Any:
        if isinstance(arg, relax.Tuple):
            fields = [self._own(field) for field in arg.fields]
            same = all(new is old for new, old in zip(fields, arg.fields, strict=True))
            return arg if same else relax.Tuple(fields)
        made = self._bound(arg)
        if not is_op(made, "dequantize"):
            return arg
        if arg not in self.read:
            self.read.add(arg)
            return arg
        return self.builder_.emit(relax.Call(made.op, made.args, made.attrs))

    def _bound(self, arg: Any) -> Any:
        return self.lookup_binding(arg) if isinstance(arg, relax.Var) else None

    def _of_levels(self, call: Any) -> Any | None:
        """The op before a quantize as one of the levels that it moves."""
        moved = self._bound(call.args[0])
        name = str(getattr(getattr(moved, "op", None), "name", "")).removeprefix("relax.")
        if not isinstance(moved, relax.Call) or name not in MOVES:
            return None
        before = self._bound(moved.args[0])
        if not is_op(before, "dequantize") or before.args[0].ty.dtype != call.attrs.out_dtype:
            return None
        if not alike(zip(map(_array, before.args[1:]), map(_array, call.args[1:]), strict=True)):
            return None
        return relax.Call(moved.op, [before.args[0], *list(moved.args)[1:]], moved.attrs)


def _array(expr: Any) -> np.ndarray | None:
    return constant_numpy(expr) if isinstance(expr, Constant) else None


def _with_number(call: Any) -> Any:
    array = _array(call.args[2])
    number = None if array is None else one_number(array)
    if number is None:
        return call
    args = [*list(call.args)[:2], constant(np.asarray(number))]
    return relax.Call(call.op, args, call.attrs, call.ty_args, call.span)
