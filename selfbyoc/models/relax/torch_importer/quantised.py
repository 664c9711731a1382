"""Quantised models as torch.export has them (pt2e of torchao): quantized_decomposed's ops.

PyTorch multiplies by the reciprocal of a scale where ours divides: near a half the level may be the
neighbour (docs/int8.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tvm import relax

from ....ir.relax.emit import constant
from ....tvm.types import Expr
from .node import Convert, Importing, argument, refused

if TYPE_CHECKING:
    import torch

_DTYPES = ("int8", "uint8")


def _quantize(by_channel: bool) -> Convert:
    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        emit, (axis, low, high, dtype) = importer.block_builder.emit, _told(node, by_channel)
        scale, zero = _factors(node, importer, dtype)
        levels = emit(relax.op.quantize(importer.env[node.args[0]], scale, zero, axis, dtype))
        limits = np.iinfo(dtype)
        if (low, high) == (limits.min, limits.max):
            return levels
        # Of fewer levels than the type has: levels beyond become the outermost.
        ends = (relax.const(end, dtype) for end in (low, high))
        return emit(relax.op.minimum(emit(relax.op.maximum(levels, next(ends))), next(ends)))

    return convert


def _dequantize(by_channel: bool) -> Convert:
    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        axis, _, _, dtype = _told(node, by_channel)
        wanted = importer._convert_data_type(str(node.meta["val"].dtype), importer.env)
        scale, zero = _factors(node, importer, dtype)
        levels = importer.env[node.args[0]]
        return importer.block_builder.emit(relax.op.dequantize(levels, scale, zero, axis, wanted))

    return convert


def _told(node: torch.fx.Node, by_channel: bool) -> tuple[int, int, int, str]:
    """The axis of the scales, the least and the largest level, and their type."""
    place = 3 + by_channel
    axis = int(argument(node, 3, "axis")) if by_channel else -1
    low, high = (
        argument(node, place + n, name) for n, name in enumerate(("quant_min", "quant_max"))
    )
    dtype = str(argument(node, place + 2, "dtype")).removeprefix("torch.")
    if dtype not in (*_DTYPES, "int32"):
        raise refused(node, f"expected levels of {', '.join(_DTYPES)} or int32, found {dtype}")
    if not (isinstance(low, int) and isinstance(high, int)):
        raise refused(node, "expected numbers as quant_min and quant_max, found tensors")
    return axis, low, high, dtype


def _factors(node: torch.fx.Node, importer: Importing, dtype: str) -> tuple[Expr, Expr]:
    """Scale and zero point: numbers, or tensors in the types that a kernel reads. PyTorch has them
    of int64 and float64, too, and what is cast is no constant to those who look for its value.
    """
    scale, zero = argument(node, 1, "scale"), argument(node, 2, "zero_point")
    known = scale if isinstance(scale, (int, float)) else importer.known(scale)
    told = np.ones(1) if known is None else np.ravel(np.asarray(known))
    if (bad := told[~(np.isfinite(told) & (told > 0))]).size:
        raise refused(node, f"expected finite scales above 0, found {bad[0]}")
    return _as(scale, "float32", importer), _as(0 if zero is None else zero, dtype, importer)


def _as(given: torch.fx.Node | float, dtype: str, importer: Importing) -> Expr:
    if isinstance(given, (int, float)):
        return relax.const(given, dtype)
    known = importer.known(given)
    if known is not None:
        array = known.numpy().astype(dtype)
        return constant(array.reshape(()) if array.size == 1 else array)
    emit, x = importer.block_builder.emit, importer.env[given]
    if tuple(given.meta["val"].shape) == (1,):
        x = emit(relax.op.reshape(x, ()))
    return x if x.ty.dtype == dtype else emit(relax.op.astype(x, dtype))


def _choose(node: torch.fx.Node, importer: Importing) -> tuple[Expr, ...]:
    """A scale and a zero point of all elements: from 0 to the least and the largest of them."""
    emit, x = importer.block_builder.emit, importer.env[node.args[0]]
    low, high = argument(node, 1, "quant_min"), argument(node, 2, "quant_max")
    least = emit(relax.op.minimum(emit(relax.op.min(x)), relax.const(0.0, "float32")))
    most = emit(relax.op.maximum(emit(relax.op.max(x)), relax.const(0.0, "float32")))
    span = emit(relax.op.subtract(most, least))
    scale = emit(relax.op.divide(span, relax.const(float(high - low), "float32")))
    scale = emit(relax.op.maximum(scale, relax.const(argument(node, 3, "eps"), "float32")))
    below = emit(relax.op.round(emit(relax.op.divide(least, scale))))
    zero = emit(relax.op.subtract(relax.const(float(low), "float32"), below))
    zero = emit(relax.op.clip(zero, low, high))
    return scale, emit(relax.op.astype(zero, "int64"))


CONVERTERS = {
    **dict.fromkeys(
        ("quantize_per_tensor.default", "quantize_per_tensor.tensor"), _quantize(False)
    ),
    **dict.fromkeys(
        ("dequantize_per_tensor.default", "dequantize_per_tensor.tensor"), _dequantize(False)
    ),
    "quantize_per_channel.default": _quantize(True),
    "dequantize_per_channel.default": _dequantize(True),
    "choose_qparams.tensor": _choose,
}
