"""Relay: shapes as functions of shapes, for ops for which TVM 0.17 has none.

The virtual machine computes with them what a function of extents of `Any` returns, an external one
too; where one is missing, it does not compile ("cannot find ShapeFunc for erf").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import relay, te, tir, topi
from tvm.relay.op.op import register_shape_func

from ...tvm.types import AttrsNode, PrimExpr, Tensor

ShapeFunc = Callable[[Any, Sequence[Any], Any], list[Any]]


def _as_first(attrs: AttrsNode, shapes: Sequence[Tensor], ranks: Sequence[Tensor]) -> list[Tensor]:
    return [topi.identity(shapes[0])]


def _batch_norm(
    attrs: AttrsNode, shapes: Sequence[Tensor], ranks: Sequence[Tensor]
) -> list[Tensor]:
    data, gamma = shapes[:2]
    return [topi.identity(data), topi.identity(gamma), topi.identity(gamma)]


def _adaptive(attrs: AttrsNode, shapes: Sequence[Tensor], ranks: Sequence[Tensor]) -> list[Tensor]:
    sides = [int(side) for side in attrs.output_size] or [1]
    at = {axis: sides[n % len(sides)] for n, axis in enumerate(map(attrs.layout.find, "HW"))}

    def extent(axis: PrimExpr) -> PrimExpr:
        found = shapes[0][axis]
        for known, side in at.items():
            found = tir.Select(axis == known, tir.const(side, found.dtype), found)
        return found

    return [te.compute(shapes[0].shape, extent)]


_OF_THEIR_FIRST = (
    "abs", "erf", "nn.layer_norm", "nn.lrn", "qnn.dequantize", "qnn.quantize", "qnn.requantize",
)  # fmt: skip
_MISSING: dict[str, ShapeFunc] = {
    **dict.fromkeys(_OF_THEIR_FIRST, _as_first),
    "nn.batch_norm": _batch_norm,
    "nn.adaptive_avg_pool2d": _adaptive,
}


def register() -> None:
    """Make them known to TVM, where nobody else has."""
    for name, func in _MISSING.items():
        if relay.op.get(name).get_attr("FShapeFunc") is None:
            register_shape_func(name, False, func)
