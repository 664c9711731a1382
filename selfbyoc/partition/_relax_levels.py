"""Relax: levels as kernels read them (partition/levels.py)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from tvm import relax

from .._tvm import constant_numpy
from ..ir._relax import Constant
from ..ir._relax_emit import constant
from ._relax_exprs import is_op, static_shape
from .levels import BYTES, alike, dequantised, is_middle, one_number
from .levels import MOVES as NAMES

MOVES = [f"relax.{name}" for name in NAMES]


@relax.expr_functor.mutator
class LevelsAsRead(relax.PyExprMutator):
    """Each reader has its own dequantize; moves are of levels; zero points are numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[Any] = set()  # the dequantised values that somebody reads
        self._rewrites = {
            "relax.quantize": self._known, "relax.dequantize": self._narrow,
            "relax.matmul": self._by_units, "relax.astype": self._of_integers,
            "relax.multiply": self._scaled, **dict.fromkeys(MOVES, self._moved),
        }  # fmt: skip

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call over its own dequantised values, or of levels instead."""
        done = super().visit_call_(call)
        rewrite = self._rewrites.get(getattr(done.op, "name", ""))
        made = None if rewrite is None else rewrite(done)
        done = done if made is None else made
        if not isinstance(done, relax.Call):
            return done
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

    def _known(self, call: Any) -> Any | None:
        """A quantize of what was just dequantised alike: the levels that it was made of."""
        before = self._bound(call.args[0])
        if not is_op(before, "dequantize") or before.attrs.out_dtype != "float32":
            return None  # fewer bits might give a neighbour
        if before.args[0].ty.dtype != call.attrs.out_dtype:
            return None
        pairs = zip(map(_array, before.args[1:]), map(_array, call.args[1:]), strict=True)
        return before.args[0] if alike(pairs) else None

    def _narrow(self, call: Any) -> Any | None:
        """A dequantised bias of 32 bits: it is one of floats."""
        arrays = [_array(arg) for arg in call.args]
        if arrays[0] is None or arrays[0].dtype != np.int32 or call.attrs.out_dtype != "float32":
            return None
        if any(array is None for array in arrays):
            return None
        return constant(dequantised(arrays, call.attrs.axis))

    def _moved(self, call: Any) -> Any | None:
        """A move of dequantised levels as one of the levels, dequantised after it."""
        before = self._bound(call.args[0])
        if not is_op(before, "dequantize") or isinstance(before.args[0], Constant):
            return None  # a weight's is read as part of the product
        scale = _array(before.args[1])
        if scale is None or scale.size != 1 or scale.flat[0] <= 0 or not _size_one(before.args[2]):
            return None
        moved = relax.Call(call.op, [before.args[0], *list(call.args)[1:]], call.attrs)
        return relax.op.dequantize(
            self.builder_.emit(moved), *before.args[1:], out_dtype=before.attrs.out_dtype
        )

    def _by_units(self, call: Any) -> Any | None:
        """x @ dequantize(w) as a dense layer has it: [units, in], transposed by an op."""
        x, weight = call.args
        made = self._bound(weight)
        array = _array(made.args[0]) if is_op(made, "dequantize") else None
        if array is None or array.ndim != 2:
            return None
        axis = 1 - made.attrs.axis % 2
        turned = relax.op.dequantize(
            constant(np.ascontiguousarray(array.T)), *made.args[1:], axis, made.attrs.out_dtype
        )
        weight = self.builder_.emit(relax.op.permute_dims(self.builder_.emit(turned)))
        return relax.op.matmul(x, weight, call.attrs.out_dtype)

    def _of_integers(self, call: Any) -> Any | None:
        """A product of levels less their zero points in int32, as floats: of dequantised ones."""
        product = self._bound(call.args[0])
        if not is_op(product, "matmul") or call.attrs.dtype != "float32":
            return None
        sides = [self._centred(arg) for arg in product.args]
        if sides[0] is None or sides[1] is None:
            return None
        weight, zero = sides[1]
        array = _array(weight)
        if array is None or array.ndim != 2 or not is_middle(_array(zero), str(array.dtype)):
            return None  # no kernel of levels takes it: floats would not be exact
        one = constant(np.ones((), "float32"))
        both = [
            self.builder_.emit(relax.op.dequantize(levels, one, point))
            for levels, point in (sides[0], sides[1])
        ]
        return self._by_units(self.builder_.normalize(relax.op.matmul(*both)))

    def _centred(self, arg: Any) -> tuple[Any, Any] | None:
        """The levels and the zero point of `cast(levels) - cast(zero)` in int32."""
        made = self._bound(arg)
        both = made.args if is_op(made, "subtract") else [arg]
        parts = [self._bound(part) for part in both]
        if not all(is_op(p, "astype") and p.attrs.dtype == "int32" for p in parts):
            return None
        levels, *zeros = (part.args[0] for part in parts)
        zero = zeros[0] if zeros else constant(np.zeros((), "int32"))
        return (levels, zero) if str(levels.ty.dtype) in BYTES and _size_one(zero) else None

    def _scaled(self, call: Any) -> Any | None:
        """A product of levels times a scale of it, or of each unit, as its operands' scale."""
        found = [n for n in (0, 1) if is_op(self._bound(call.args[n]), "matmul")]
        product = self._bound(call.args[found[0]]) if len(found) == 1 else None
        left = None if product is None else self._bound(product.args[0])
        if product is None or left is None or not is_op(left, "dequantize"):
            return None
        if not _is_one(left.args[1]):
            return None
        scale = call.args[1 - found[0]]
        if scale.ty.ndim > product.ty.ndim:
            return None
        if not _size_one(scale):
            return self._scaled_by_units(product, scale)
        made = relax.op.dequantize(left.args[0], scale, left.args[2], out_dtype="float32")
        return relax.op.matmul(self.builder_.emit(made), *list(product.args)[1:])

    def _scaled_by_units(self, product: Any, scale: Any) -> Any | None:
        turned = self._bound(product.args[1])
        weight = self._bound(turned.args[0]) if is_op(turned, "permute_dims") else None
        if weight is None or not is_op(weight, "dequantize") or not _is_one(weight.args[1]):
            return None
        units = static_shape(weight.args[0])[0]
        if static_shape(scale) != [*[1] * (scale.ty.ndim - 1), units]:
            return None
        vector = self.builder_.emit(relax.op.reshape(scale, (units,)))
        made = relax.op.dequantize(weight.args[0], vector, weight.args[2], 0, "float32")
        weight = self.builder_.emit(relax.op.permute_dims(self.builder_.emit(made)))
        return relax.op.matmul(product.args[0], weight)


@relax.expr_functor.mutator
class FloatWeights(relax.PyExprMutator):
    """Constant levels that no kernel takes as floats: nobody dequantises them in each call."""

    def __init__(self, taken: Collection[Any]) -> None:
        super().__init__()
        self.taken = taken

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call; a constant instead of a dequantize of one."""
        if is_op(call, "dequantize") and call not in self.taken:
            arrays = [_array(arg) for arg in call.args]
            if call.attrs.out_dtype == "float32" and not any(array is None for array in arrays):
                return constant(dequantised(arrays, call.attrs.axis))
        return super().visit_call_(call)


def _size_one(expr: Any) -> bool:
    return expr.ty.ndim == 0 or set(static_shape(expr)) == {1}


def _is_one(expr: Any) -> bool:
    array = _array(expr)
    return array is not None and array.size == 1 and float(array.flat[0]) == 1


def _array(expr: Any) -> np.ndarray | None:
    return constant_numpy(expr) if isinstance(expr, Constant) else None


def _with_number(call: Any) -> Any:
    array = _array(call.args[2])
    number = None if array is None else one_number(array)
    if number is None:
        return call
    args = [*list(call.args)[:2], constant(np.asarray(number))]
    return relax.Call(call.op, args, call.attrs, call.ty_args, call.span)
