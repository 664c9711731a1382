"""Relax: casts to floats of 8 bits and from them, which TVM 0.27 rounds otherwise than ONNX; values
as others of the same bits; products of what came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from ....common.optional import extra
from ....tvm import te, tir
from ....tvm.types import Attrs, BlockBuilder, Expr, PrimExpr, Tensor
from ..checks import EIGHT_BITS

_E8M0 = "float8_e8m0fnu"


@dataclass(frozen=True)
class _Format:
    """A float of 8 bits: bits of its mantissa, bias of its exponent; the codes of its largest
    number, of what is larger, of no number; whether there is a zero below zero.
    """

    mantissa: int
    bias: int
    largest: int
    beyond: int
    nan: int
    is_signed_zero: bool = True


_FORMATS = {
    "float8_e4m3fn": _Format(3, 7, 0x7E, 0x7F, 0x7F),
    "float8_e4m3fnuz": _Format(3, 8, 0x7F, 0x80, 0x80, False),
    "float8_e5m2": _Format(2, 15, 0x7B, 0x7C, 0x7F),
    "float8_e5m2fnuz": _Format(2, 16, 0x7F, 0x80, 0x80, False),
}


def _cast(builder: BlockBuilder, inputs: Sequence[Expr], given: Attrs) -> Expr | None:
    to = str(extra("onnx").helper.tensor_dtype_to_np_dtype(given["to"]))
    return _converted(builder, inputs[0], to, given)


def _cast_like(builder: BlockBuilder, inputs: Sequence[Expr], given: Attrs) -> Expr | None:
    if not isinstance(inputs[1].ty, relax.TensorType):
        return None
    return _converted(builder, inputs[0], str(inputs[1].ty.dtype.dtype), given)


def _converted(builder: BlockBuilder, x: Expr, to: str, given: Attrs) -> Expr | None:
    if not isinstance(getattr(x, "ty", None), relax.TensorType):
        return None
    kind = str(x.ty.dtype.dtype)
    if to not in EIGHT_BITS and kind not in EIGHT_BITS:
        return None
    if kind in EIGHT_BITS:
        codes = relax.op.astype(_same_bits(builder, x, "uint8"), "int32")
        numbers = np.arange(256, dtype=np.uint8).view(_numpy(kind)).astype(np.float32)
        x = builder.emit(relax.op.take(relax.const(numbers), builder.emit(codes), 0))
    elif kind != "float32":
        x = builder.emit(relax.op.astype(x, "float32"))
    if to not in EIGHT_BITS:
        return relax.op.astype(x, to)
    saturates = bool(given.get("saturate", 1))
    how = given.get("round_mode", "up")
    how = how.decode() if isinstance(how, bytes) else how

    def code(bits: Expr) -> PrimExpr:
        return _power(bits, how, saturates) if to == _E8M0 else _code(bits, _FORMATS[to], saturates)

    def encoded(a: Tensor) -> Tensor:
        return te.compute(
            a.shape,
            lambda *i: tir.reinterpret(to, code(tir.reinterpret("uint32", a(*i))).astype("uint8")),
            name="narrowed",
        )

    return builder.emit_te(encoded, x)


def _numpy(kind: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, kind))


def _code(bits: Expr, kind: _Format, saturates: bool) -> PrimExpr:
    """The code of a float32 with these bits: the nearest, of two the even one."""
    u32 = "uint32"

    def number(value: int) -> PrimExpr:
        return tir.const(value, u32)

    size, dropped = bits & number(0x7FFFFFFF), 23 - kind.mantissa
    odd = (size >> number(dropped)) & number(1)
    rounded = size + number((1 << (dropped - 1)) - 1) + odd
    normal = (rounded >> number(dropped)) - number((127 - kind.bias) << kind.mantissa)
    # Of those below: to a float32 so large that its last bit is worth the smallest step.
    steps = kind.bias - 1 + kind.mantissa
    shift = tir.const(2.0 ** (23 - steps), "float32")
    raised = tir.reinterpret(u32, tir.reinterpret("float32", size) + shift)
    small = raised - tir.reinterpret(u32, shift)
    found = tir.Select(size < number((128 - kind.bias) << 23), small, normal)
    beyond = kind.largest if saturates else kind.beyond
    is_large = (size >= number(0x7F800000)) | (found > number(kind.largest))
    found = tir.Select(is_large, number(beyond), found)
    sign = (bits >> number(24)) & number(0x80)
    if not kind.is_signed_zero:
        sign = tir.Select(found == number(0), number(0), sign)
    return tir.Select(size > number(0x7F800000), number(kind.nan), found | sign)


def _power(bits: Expr, how: str, saturates: bool) -> PrimExpr:
    """The exponent alone, of what has no sign."""

    def number(value: int) -> PrimExpr:
        return tir.const(value, "uint32")

    exponent, rest = (bits >> number(23)) & number(0xFF), bits & number(0x7FFFFF)
    is_up = rest > number(0)
    if how == "nearest":
        half = number(0x400000)
        is_up = (rest > half) | ((rest == half) & (exponent > number(0)))
    if how == "down":
        is_up = rest < number(0)
    if saturates:
        is_up = is_up & (exponent < number(0xFE))
    raised = exponent + tir.Select(is_up, number(1), number(0))
    return tir.Select(exponent == number(0xFF), number(0xFF), raised)


def _bit_cast(builder: BlockBuilder, inputs: Sequence[Expr], given: Attrs) -> Expr:
    """The same bits as another dtype of the same size."""
    to = str(extra("onnx").helper.tensor_dtype_to_np_dtype(given["to"]))
    return _same_bits(builder, inputs[0], to)


def _same_bits(builder: BlockBuilder, x: Expr, to: str) -> Expr:
    if str(x.ty.dtype.dtype) == "bool":
        x = builder.emit(relax.op.astype(x, "uint8"))

    def again(a: Tensor) -> Tensor:
        return te.compute(a.shape, lambda *i: tir.reinterpret(to, a(*i)), name="same_bits")

    return x if str(x.ty.dtype.dtype) == to else builder.emit_te(again, x)


def _product(builder: BlockBuilder, inputs: Sequence[Expr], given: Attrs) -> Expr | None:
    """A CumProd along an axis that is a constant."""
    x, axis = inputs[0], int(inputs[1].value.numpy())
    if given.get("reverse", 0):
        x = builder.emit(relax.op.flip(x, axis))
    kind = str(x.ty.dtype.dtype)
    found = relax.op.cumprod(x, axis, dtype=kind, exclusive=bool(given.get("exclusive", 0)))
    return relax.op.flip(builder.emit(found), axis) if given.get("reverse", 0) else found


CONVERTERS = {"BitCast": _bit_cast, "Cast": _cast, "CastLike": _cast_like, "CumProd": _product}
