"""A state as 8 bits give it back: what ONNX Runtime's DynamicQuantizeLSTM multiplies. The scale and
the zero point of a step follow from all rows of the state before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, reduce_axes
from ...steps.tiles import BLOCK


@dataclass(frozen=True)
class Rounding:
    """The stages from the state before each step, [length, directions, rows, units], to what is
    multiplied of it, in the order of computing: `ranges` are the least and the greatest element, of
    each lane and of all; `point` is the level of 0, of levels from 0 on; `kept` is the state as
    floats, or its levels.
    """

    ranges: tuple[Tensor, ...]
    scale: Tensor
    point: Tensor
    kept: Tensor


def rounded(before: Tensor, least: int | None) -> Rounding:
    """Levels from `least` on, or floats; copies of rows and units change no range."""
    length, sides, rows, units = extents(before)
    zero, one, most = (tir.const(n, before.dtype) for n in (0, 1, 255))

    def ends(name: str, reduce: Callable[..., PrimExpr]) -> tuple[Tensor, Tensor]:
        """The least or the greatest element: of each lane, then of all."""
        b, block = reduce_axes(b=rows, block=units // BLOCK)
        (n,) = reduce_axes(n=BLOCK)
        lanes = te.compute(
            (length, sides, BLOCK),
            lambda t, d, lane: reduce(before(t, d, b, block * BLOCK + lane), axis=[b, block]),
            name=f"{name}_of_lanes",
        )
        whole = te.compute((length, sides), lambda t, d: reduce(lanes(t, d, n), axis=n), name=name)
        return lanes, whole

    lows, highs = ends("low", te.min), ends("high", te.max)

    def low(t: PrimExpr, d: PrimExpr) -> PrimExpr:
        return tir.min(zero, lows[-1](t, d))

    def scale_of(t: PrimExpr, d: PrimExpr) -> PrimExpr:
        spread = tir.max(zero, highs[-1](t, d)) - low(t, d)
        return tir.Select(spread > zero, spread / most, one)

    def clipped(x: PrimExpr) -> PrimExpr:
        return tir.max(zero, tir.min(most, x))

    scale = te.compute((length, sides), scale_of, name="scale")
    point = te.compute(
        (length, sides), lambda t, d: clipped(tir.nearbyint(-low(t, d) / scale(t, d))), name="point"
    )

    def level(t: PrimExpr, d: PrimExpr, b: PrimExpr, j: PrimExpr) -> PrimExpr:
        return clipped(tir.nearbyint(before(t, d, b, j) / scale(t, d)) + point(t, d))

    def kept(t: PrimExpr, d: PrimExpr, b: PrimExpr, j: PrimExpr) -> PrimExpr:
        found = level(t, d, b, j)
        if least is not None:
            return (found.astype("int32") + least).astype("int8" if least else "uint8")
        return (found - point(t, d)) * scale(t, d)

    stage = te.compute(extents(before), kept, name="kept")
    return Rounding((*lows, *highs), scale, point, stage)
