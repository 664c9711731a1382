"""Resizing, sampling and pools that TVM's frontend (0.27) takes for others."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm import relax

from ....tvm.types import Expr
from ..algebra import Algebra, Extent
from ..copies import spread
from .importer import is_open
from .node import Convert, Importing, argument, refused

if TYPE_CHECKING:
    import torch

_METHODS = {"linear": 1, "cubic": 1, "nearest_neighbor": 0}


def _resize(method: str) -> Convert:
    """To a size, or by factors that are sizes' ratios: by others PyTorch samples elsewhere than at
    the ratio of the sizes, and TVM has no word for it.
    """

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        x, size = importer.env[node.args[0]], argument(node, 1, "output_size")
        corners = method != "nearest_neighbor" and bool(argument(node, 2, "align_corners"))
        factors = argument(node, 2 + _METHODS[method], "scale_factors")
        given, out = (_extents(each, importer) for each in (node.args[0], node))
        if not size and factors is not None and not corners:
            for extent, factor, wanted in zip(given[2:], factors, out[2:], strict=True):
                if not _is_ratio(importer.algebra, extent, factor, wanted):
                    text = f"{extent} pixels by a factor of {factor} are no whole number"
                    raise refused(node, f"{text}; give size=, or recompute_scale_factor=True")
        if method == "nearest_neighbor" and is_open(*given[2:]):
            times = _times(importer.algebra, given, out, factors)
            if times is not None:
                return spread(importer.block_builder, importer.algebra, x, given, times)
        places = "align_corners" if corners else "half_pixel"
        how = {"coordinate_transformation_mode": places}
        if method == "nearest_neighbor":
            how = {"coordinate_transformation_mode": "asymmetric", "rounding_method": "floor"}
        sides = relax.ShapeExpr(out[2:])
        resized = relax.op.image.resize2d(x, sides, layout="NCHW", method=method, **how)
        return importer.block_builder.emit(resized)

    return convert


def _extents(node: torch.fx.Node, importer: Importing) -> list[Extent]:
    found = importer.extents(node.meta["val"].shape)
    if found is None:
        raise refused(node, "an image's size is no expression of the inputs' sizes")
    return list(found)


def _is_ratio(algebra: Algebra, extent: Extent, factor: float, wanted: Extent) -> bool:
    """Whether so many pixels are a size times a factor, at every size."""
    if not is_open(extent, wanted):
        return math.isclose(extent * factor, wanted, rel_tol=1e-9)
    over, under = float(factor).as_integer_ratio()
    return algebra.are_equal(extent * over, wanted * under)


def _times(
    algebra: Algebra,
    given: Sequence[Extent],
    out: Sequence[Extent],
    factors: Sequence[float] | None,
) -> list[int] | None:
    """The whole numbers that sizes are multiplied by, at every size."""
    pairs = list(zip(given, out, strict=True))
    told = [1, 1, *factors] if factors else [algebra.quotient(b, a) for a, b in pairs]
    times = [int(n) if isinstance(n, (int, float)) else 0 for n in told]
    is_so = all(n and algebra.are_equal(a * n, b) for n, (a, b) in zip(times, pairs, strict=True))
    return times if is_so else None


def _average(name: str) -> Convert:
    """A pool, whose sums the frontend always divides by their number."""

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        divisor = argument(node, 6, "divisor_override")
        if divisor is not None:
            raise refused(node, f"expected no divisor_override, found {divisor}")
        return getattr(importer, name)(node)

    return convert


def _refuse(text: str) -> Convert:
    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        raise refused(node, text)

    return convert


def _first_result(name: str, others: str) -> Convert:
    """Of an op with several the frontend computes the first."""

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        read = {u.args[1] for u in node.users if u.target is operator.getitem and u.users}
        if read - {0}:
            raise refused(node, f"{others} are read, which TVM does not compute")
        return getattr(importer, name)(node)

    return convert


def _sample(node: torch.fx.Node, importer: Importing) -> Expr:
    """At a grid of [n, height, width, 2]; TVM's op looks for [n, 2, height, width]."""
    emit = importer.block_builder.emit
    x, grid = (importer.env[given] for given in node.args[:2])
    grid = emit(relax.op.permute_dims(grid, [0, 3, 1, 2]))
    method = ("bilinear", "nearest", "bicubic")[argument(node, 2, "interpolation_mode")]
    padding = ("zeros", "border", "reflection")[argument(node, 3, "padding_mode")]
    corners = bool(argument(node, 4, "align_corners"))
    sampled = relax.op.image.grid_sample(x, grid, method, "NCHW", padding, corners)
    return emit(sampled)


_PLACES, _MOMENTS = "the places of the largest elements", "means and deviations"
_SMOOTH = "expected antialias=False: TVM has no such resizing"
CONVERTERS = {
    "upsample_nearest2d.vec": _resize("nearest_neighbor"),
    "upsample_bilinear2d.vec": _resize("linear"),
    "upsample_bicubic2d.vec": _resize("cubic"),
    "_upsample_bilinear2d_aa.vec": _refuse(_SMOOTH),
    "_upsample_bilinear2d_aa.default": _refuse(_SMOOTH),
    "_upsample_bicubic2d_aa.vec": _refuse(_SMOOTH),
    "_upsample_bicubic2d_aa.default": _refuse(_SMOOTH),
    "avg_pool2d.default": _average("_avg_pool2d"),
    "avg_pool3d.default": _average("_avg_pool3d"),
    "grid_sampler_2d.default": _sample,
    "max_pool2d_with_indices.default": _first_result("_max_pool2d_with_indices", _PLACES),
    "max_pool3d_with_indices.default": _first_result("_max_pool3d_with_indices", _PLACES),
    "native_layer_norm.default": _first_result("_native_layer_norm", _MOMENTS),
    "native_group_norm.default": _first_result("_native_group_norm", _MOMENTS),
}
