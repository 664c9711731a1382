"""Forms of ops that read an image at places that are data: regions of RoiAlign, grids of
GridSample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .checks import IS_RELAY
from .graph import Graph, attributes, remade
from .image_checks import corners_of
from .steps import Steps

if TYPE_CHECKING:
    import onnx

_REACH = 2  # pixels that a cubic kernel reads beyond the nearest


def _half_pixel(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A RoiAlign of boxes that are scaled already: 0.27's frontend shifts them by half a pixel
    before it scales them, ONNX after.
    """
    dtype = graph.dtype(node.input[1])
    if IS_RELAY or dtype is None or corners_of(node, graph) != "half_pixel":
        return None
    given, steps = attributes(node), Steps(graph, node)
    boxes = steps("Mul", node.input[1], np.asarray(given.pop("spatial_scale", 1.0), dtype))
    if given.get("sampling_ratio", 0) < 1:
        boxes = _without_empty(steps, boxes, dtype)
    inputs = [node.input[0], boxes, *node.input[2:]]
    return [*steps.nodes, remade(node, inputs=inputs, attributes=given)]


def _without_empty(steps: Steps, boxes: str, dtype: np.dtype) -> str:
    """Boxes with those of no area outside of every image, where all is 0: where as many samples
    are taken as a box is large, TVM takes none of these, and does not write their results.
    """
    begin, end = (steps("Slice", boxes, [n], [n + 2], [1]) for n in (0, 2))
    is_inside = steps.cast(steps("Less", begin, end), dtype)
    has_area = steps.cast(steps.over("ReduceMin", is_inside, [1], keepdims=1), np.bool_)
    return steps("Where", has_area, boxes, np.asarray([-20, -20, -10, -10], dtype))


def _mirrored(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A GridSample that reads mirror images outside of the image, as one that reads inside alone:
    TVM mirrors each place where it is used, and takes minutes to simplify that. The image goes from
    -1 to 1 whatever its corners are, so that places are mirrored there.
    """
    given, grid = attributes(node), node.input[1]
    dtype, rank = graph.dtype(grid), graph.rank(node.input[0])
    if given.get("padding_mode", b"zeros") != b"reflection" or dtype is None or rank is None:
        return None
    steps, (one, period) = Steps(graph, node), np.asarray([1, 4], dtype)
    turned = steps("Mod", steps("Add", grid, one), period, fmod=1)
    turned = steps("Abs", turned)  # a mirror image is the same from -1 to both sides
    turned = steps("Sub", steps("Min", turned, steps("Sub", period, turned)), one)
    inside = steps("LessOrEqual", steps("Abs", grid), one)
    places, x = steps("Where", inside, grid, turned), node.input[0]
    if given.get("mode", b"linear") in (b"cubic", b"bicubic"):
        x, places = _with_margin(steps, x, places, rank, bool(given.get("align_corners", 0)), dtype)
    given["padding_mode"] = b"border"
    return [*steps.nodes, remade(node, inputs=[x, places], attributes=given)]


def _with_margin(
    steps: Steps, x: str, places: str, rank: int, is_aligned: bool, dtype: np.dtype
) -> tuple[str, str]:
    """The image with as many mirrored pixels around it as a cubic kernel reads, and the places in
    it.
    """
    factors, shape = [], steps("Shape", x)
    for axis in range(2, rank):
        size = steps("Gather", shape, np.int64(axis))
        last, end = steps("Sub", size, np.int64(1)), steps("Add", size, np.int64(_REACH))
        pixels = steps("Range", np.int64(-_REACH), end, np.int64(1))
        x = steps("Gather", x, _mirror(steps, pixels, size, is_aligned), axis=axis)
        old = steps.cast(last if is_aligned else size, dtype)
        factors.append(steps("Div", old, steps("Add", old, np.asarray(2 * _REACH, dtype))))
    columns = [steps("Reshape", f, [1]) for f in reversed(factors)]
    return x, steps("Mul", places, steps("Concat", *columns, axis=0))


def _mirror(steps: Steps, pixels: str, size: str, is_aligned: bool) -> str:
    """The pixels of an axis that are there for those beyond its ends."""
    one, two = np.int64(1), np.int64(2)
    if is_aligned:  # the outermost pixels are the mirrors
        period = steps("Max", steps("Mul", steps("Sub", size, one), two), one)
        turned = steps("Mod", pixels, period)
        return steps("Min", turned, steps("Sub", period, turned))
    period = steps("Mul", size, two)
    turned = steps("Mod", pixels, period)
    return steps("Min", turned, steps("Sub", steps("Sub", period, turned), one))


FORMS = {"GridSample": _mirrored, "RoiAlign": _half_pixel}
