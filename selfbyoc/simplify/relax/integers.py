"""Relax: products of levels in int32 (MatMulInteger, ConvInteger) as those of dequantised levels.

    cast((levels - zero) @ weight + bias) * scale
    ==  dequantize(levels, scale, zero) @ dequantize(weight, 1) + cast(bias) * scale

Both are exact where kernels of levels compute them.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...ir.relax.emit import constant
from ...ops.fixed_point import MOST_OF_TWO
from ...tvm.types import Expr
from ..level_values import BYTES, is_level, is_middle
from .exprs import array_of, is_op, size_one, static_shape

_PRODUCTS = ("matmul", "nn.conv1d", "nn.conv2d")


@relax.expr_functor.mutator
class IntegersAsLevels(relax.PyExprMutator):
    """Casts of integer products to floats, and what scales them."""

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call, of dequantised levels instead."""
        done, made = super().visit_call_(call), None
        if is_op(done, "astype") and done.attrs.dtype == "float32":
            made = self._of_integers(done)
        elif is_op(done, "multiply"):
            made = self._scaled(done)
        return done if made is None else made

    def _bound(self, arg: Expr) -> Expr:
        return self.lookup_binding(arg) if isinstance(arg, relax.Var) else None

    def _of_integers(self, call: Expr) -> Expr | None:
        """A product, perhaps with a bias."""
        product, bias = self._bound(call.args[0]), None
        if is_op(product, "add"):
            product, bias = self._bound(product.args[0]), product.args[1]
        if not any(is_op(product, name) for name in _PRODUCTS):
            return None
        x, weight = self._centred(product.args[0]), self._weight(product.args[1])
        if weight is None and is_op(product, "matmul") and _is_summed(product):
            weight = self._centred(product.args[1])  # computed, as both sides in attention
        if x is None or weight is None:
            return None  # no kernel of levels takes it: floats would not be exact
        one = constant(np.ones((), "float32"))
        both = [
            self.builder_.emit(relax.op.dequantize(levels, one, zero))
            for levels, zero in (x, weight)
        ]
        made = _like(product, both)
        if bias is None:
            return made
        return relax.op.add(self.builder_.emit(made), relax.op.astype(bias, "float32"))

    def _weight(self, arg: Expr) -> tuple[Expr, Expr] | None:
        """A constant weight and 0: less a zero point that is not its middle."""
        array = array_of(arg)
        if array is None:
            made = self._centred(arg)
            if made is None:
                return None
            levels, zero = map(array_of, made)
            if levels is None or zero is None:
                return None
            if is_middle(zero, str(levels.dtype)):
                return made
            array = levels.astype("int32") - zero
        most = np.abs(array).max(initial=0)
        if array.dtype != np.int32 or most > 255:
            return None
        dtype = "int8" if most < 128 else "int16"
        return constant(array.astype(dtype)), constant(np.zeros((), "int8"))

    def _centred(self, arg: Expr) -> tuple[Expr, Expr] | None:
        """The levels and the zero point of `cast(levels) - cast(zero)` in int32."""
        made = self._bound(arg)
        both = made.args if is_op(made, "subtract") else [arg]
        parts = [part for part in map(self._narrow, both) if part is not None]
        if len(parts) < len(both):
            return None
        levels, *zeros = parts
        zero = zeros[0] if zeros else constant(np.zeros((), "int32"))
        dtype = str(levels.ty.dtype)
        holds = dtype in BYTES and is_level(array_of(zero), str(zero.ty.dtype), dtype)
        return (levels, zero) if holds and size_one(zero) else None

    def _narrow(self, arg: Expr) -> Expr | None:
        """What is cast to int32; a constant is as it is."""
        made = self._bound(arg)
        if is_op(made, "astype") and made.attrs.dtype == "int32":
            return made.args[0]
        return None if array_of(arg) is None else arg

    def _scaled(self, call: Expr) -> Expr:
        """A product of levels times a scale of it, or of each unit, as its operands' scale; so is
        one with a bias, which is scaled, too.
        """
        found = [n for n in (0, 1) if self._product(call.args[n]) is not None]
        if len(found) != 1:
            return None
        arg, scale = call.args[found[0]], call.args[1 - found[0]]
        scaled = self._scaled_product(self._product(arg), scale)
        made = self._bound(arg)
        if scaled is None or not is_op(made, "add"):
            return scaled
        bias = self.builder_.emit(relax.op.multiply(made.args[1], scale))
        return relax.op.add(self.builder_.emit(scaled), bias)

    def _product(self, arg: Expr) -> Expr | None:
        """A product of levels whose scale is 1 yet; behind a bias, if need be."""
        made = self._bound(arg)
        if is_op(made, "add"):
            made = self._bound(made.args[0])
        if not any(is_op(made, name) for name in _PRODUCTS):
            return None
        left = self._bound(made.args[0])
        return made if is_op(left, "dequantize") and _is_one(left.args[1]) else None

    def _scaled_product(self, product: Expr, scale: Expr) -> Expr | None:
        if scale.ty.ndim > product.ty.ndim:
            return None
        left, weight = (self._bound(arg) for arg in product.args)
        if size_one(scale):
            made = relax.op.dequantize(left.args[0], scale, left.args[2], out_dtype="float32")
            return _like(product, [self.builder_.emit(made), product.args[1]])
        axis, behind = _units(product)
        if not is_op(weight, "dequantize") or not _is_one(weight.args[1]):
            return None
        units = static_shape(weight.args[0])[axis]
        wanted = [units, *[1] * behind]
        if static_shape(scale) != [*[1] * (scale.ty.ndim - len(wanted)), *wanted]:
            return None
        vector = self.builder_.emit(relax.op.reshape(scale, (units,)))
        made = relax.op.dequantize(weight.args[0], vector, weight.args[2], axis, "float32")
        return _like(product, [product.args[0], self.builder_.emit(made)])


def _like(product: Expr, both: list[Expr]) -> Expr:
    """The product of other operands, in floats."""
    if is_op(product, "matmul"):
        return relax.op.matmul(*both)
    return relax.Call(product.op, both, product.attrs)


def _is_summed(product: Expr) -> bool:
    """Whether int32 holds the sums of a product; of open sizes it is taken for that."""
    depth = getattr(product.args[0].ty.shape.values[-1], "value", 0)
    return int(depth) <= MOST_OF_TWO


def _units(product: Expr) -> tuple[int, int]:
    """Which axis of a weight its units are, and how many of the result are behind them."""
    if is_op(product, "matmul"):
        return 1, 0
    attrs = product.attrs
    return str(attrs.kernel_layout).index("O"), str(attrs.data_layout)[::-1].index("C")


def _is_one(expr: Expr) -> bool:
    array = array_of(expr)
    return array is not None and array.size == 1 and float(array.flat[0]) == 1
