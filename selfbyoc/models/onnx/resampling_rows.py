"""A Resize as rows that are picked along each axis that changes, or weighted and summed: all that
ONNX says, of any number of axes, to sizes that are data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .graph import Graph, NodeAttrs, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class _Axis:
    """Of an axis, as names of values of one element: its old and new size, and their ratio; where
    the region of interest begins and ends.
    """

    number: int
    old: str
    new: str
    scale: str
    ends: Sequence[str]


def as_rows(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A Resize of opset 11 or later; None where the number of axes or the dtype is not known."""
    rank, dtype = graph.rank(node.input[0]), graph.dtype(node.input[0])
    if rank is None or dtype is None:
        return None
    how, steps = attributes(node), Steps(graph, node)
    x, mode = node.input[0], how.get("mode", b"nearest")
    width = np.dtype("float64" if dtype == np.float64 else "float32")
    if mode != b"nearest" and dtype != width:
        x = steps.cast(x, width)
    for axis in _axes(node, graph, steps, rank):
        at, outside = _coordinates(steps, axis, how)
        if mode == b"nearest":
            x = steps("Gather", x, _nearest(steps, axis, at, how), axis=axis.number)
        else:
            x = _summed(steps, x, axis, at, how, rank, width)
        if outside:
            shape = [-1] + [1] * (rank - 1 - axis.number)
            kept = dtype if mode == b"nearest" else width
            value = np.asarray(how.get("extrapolation_value", 0.0), kept)
            x = steps("Where", steps("Reshape", outside, shape), value, x)
    if mode != b"nearest" and dtype != width:
        x = _narrowed(steps, x, dtype)
    return steps.instead(x)


def _narrowed(steps: Steps, x: str, dtype: np.dtype) -> str:
    """Of integers the nearest one there is."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = steps("Clip", steps("Round", x), np.float32(limits.min), np.float32(limits.max))
    return steps.cast(x, dtype)


def _axes(node: onnx.NodeProto, graph: Graph, steps: Steps, rank: int) -> list[_Axis]:
    """The axes that change, or may."""
    how, dims = attributes(node), graph.dims(node.input[0]) or [None] * rank
    numbers = [axis % rank for axis in how.get("axes", range(rank))]
    sizes = node.input[3] if len(node.input) > 3 else ""
    scales = node.input[2] if len(node.input) > 2 and not sizes else ""
    known = graph.constant(sizes or scales)
    roi = node.input[1] if len(node.input) > 1 and node.input[1] else ""
    if how.get("coordinate_transformation_mode", b"") != b"tf_crop_and_resize":
        roi = ""
    shape = steps.cast(steps("Shape", node.input[0]), np.float64)
    width = steps("Gather", shape, numbers)
    if scales:
        scale = steps.cast(scales, np.float64)
        new = steps.cast(steps("Floor", steps("Mul", width, scale)), np.int64)
    else:
        new, scale = _of_sizes(steps, steps.cast(sizes, np.int64), width, how)
    found = []
    for n, axis in enumerate(numbers):
        same = known is not None and known[n] == (1 if scales else dims[axis])
        if same and not roi and how.get("keep_aspect_ratio_policy", b"stretch") == b"stretch":
            continue
        old, size, factor = (steps("Gather", part, [n]) for part in (width, new, scale))
        ends = [steps("Gather", roi, [p]) for p in (n, n + len(numbers))] if roi else []
        ends = [steps.cast(end, np.float64) for end in ends]
        found.append(_Axis(axis, old, size, factor, ends))
    return found


def _of_sizes(steps: Steps, sizes: str, width: str, how: NodeAttrs) -> tuple[str, str]:
    """The new sizes and the scales, for sizes that are asked for."""
    scale = steps("Div", steps.cast(sizes, np.float64), width)
    policy = how.get("keep_aspect_ratio_policy", b"stretch")
    if policy == b"stretch":
        return sizes, scale
    kind = "ReduceMin" if policy == b"not_larger" else "ReduceMax"
    one = steps.over(kind, scale, [0], keepdims=1)
    scale = steps("Add", steps("Mul", scale, np.float64(0)), one)
    rounded = steps("Floor", steps("Add", steps("Mul", scale, width), np.float64(0.5)))
    return steps.cast(rounded, np.int64), scale


def _coordinates(steps: Steps, axis: _Axis, how: NodeAttrs) -> tuple[str, str]:
    """Where the new pixels lie among the old ones, as ONNX has it; and which lie outside of the
    image, where that counts.
    """
    mode = how.get("coordinate_transformation_mode", b"half_pixel").decode()
    count = steps("Reshape", axis.new, np.zeros(0, np.int64))
    y = steps.cast(steps("Range", 0, count, 1), np.float64)
    half, one = np.float64(0.5), np.float64(1)
    new = steps("Mul", axis.scale, axis.old)  # perhaps no whole number
    is_one, none = steps("Equal", new, one), steps("Mul", y, np.float64(0))
    last, gaps = steps("Sub", axis.old, one), steps("Sub", new, one)
    gaps = steps("Where", is_one, one, gaps)
    middle = steps("Sub", steps("Div", steps("Add", y, half), axis.scale), half)
    if mode == "align_corners":
        return steps("Where", is_one, none, steps("Div", steps("Mul", y, last), gaps)), ""
    if mode == "asymmetric":
        return steps("Div", y, axis.scale), ""
    if mode == "pytorch_half_pixel":
        return steps("Where", is_one, steps("Sub", none, half), middle), ""
    if mode == "half_pixel_symmetric":
        apart = steps("Sub", one, steps("Div", steps.cast(axis.new, np.float64), new))
        return steps("Add", steps("Mul", steps("Mul", axis.old, half), apart), middle), ""
    if mode != "tf_crop_and_resize" or not axis.ends:
        return middle, ""
    begin, end = axis.ends
    reach = steps("Mul", steps("Sub", end, begin), last)
    placed = steps("Div", steps("Mul", y, reach), gaps)
    centre = steps("Add", none, steps("Mul", reach, half))
    at = steps("Where", is_one, centre, placed)
    at = steps("Add", at, steps("Mul", begin, last))
    outside = steps("Or", steps("Less", at, np.float64(0)), steps("Greater", at, last))
    return at, outside


def _nearest(steps: Steps, axis: _Axis, at: str, how: NodeAttrs) -> str:
    mode, half = how.get("nearest_mode", b"round_prefer_floor"), np.float64(0.5)
    kind = "Floor" if mode in (b"floor", b"round_prefer_ceil") else "Ceil"
    if mode == b"round_prefer_floor":
        at = steps("Sub", at, half)
    elif mode == b"round_prefer_ceil":
        at = steps("Add", at, half)
    return _inside(steps, steps(kind, at), axis)


def _inside(steps: Steps, places: str, axis: _Axis) -> str:
    """Places as integers, the nearest that there are."""
    last = steps("Sub", axis.old, np.float64(1))
    return steps.cast(steps("Max", steps("Min", places, last), np.float64(0)), np.int64)


def _summed(
    steps: Steps, x: str, axis: _Axis, at: str, how: NodeAttrs, rank: int, dtype: np.dtype
) -> str:
    """Neighbours, weighted by how far away they are."""
    one, is_cubic = np.float64(1), how.get("mode") == b"cubic"
    reach = 2 if is_cubic else 1
    column = steps.over("Unsqueeze", at, [1])
    first = steps("Sub", steps("Ceil", column), one)  # of a whole number the one before
    step, offsets = _offsets(steps, axis, reach, how)
    ratio = steps("Sub", column, first)
    away = steps("Abs", steps("Mul", steps("Sub", offsets, ratio), step))
    weights = _cubic(steps, away, how) if is_cubic else _linear(steps, away)
    places = steps("Add", first, offsets)
    if how.get("exclude_outside", 0):
        last = steps("Sub", axis.old, one)
        low, high = steps("Less", places, np.float64(0)), steps("Greater", places, last)
        weights = steps("Where", steps("Or", low, high), np.float64(0), weights)
    if how.get("exclude_outside", 0) or how.get("antialias", 0):
        total = steps.over("ReduceSum", weights, [1], keepdims=1)
        is_none = steps("Equal", total, np.float64(0))
        weights = steps("Div", weights, steps("Where", is_none, one, total))
    picked = steps("Gather", x, _inside(steps, places, axis), axis=axis.number)
    after = list(range(2, 1 + rank - axis.number))
    weights = steps.cast(weights, dtype)
    weights = steps.over("Unsqueeze", weights, after) if after else weights
    return steps.over("ReduceSum", steps("Mul", picked, weights), [axis.number + 1], keepdims=0)


def _offsets(steps: Steps, axis: _Axis, reach: int, how: NodeAttrs) -> tuple[str, str]:
    """How far a pixel's weight goes, by which distances are multiplied; and the neighbours that
    it reaches, counted from the one before.
    """
    one = steps.constant(np.float64(1))
    if not how.get("antialias", 0):
        return one, steps.constant(np.arange(1 - reach, 1 + reach).astype(float))
    step = steps("Min", axis.scale, one)
    far = steps("Neg", steps("Div", np.float64(reach), step))
    begin = steps("Reshape", steps("Add", steps("Floor", far), one), np.zeros(0, np.int64))
    end = steps("Sub", np.float64(2), begin)
    begin, end = (steps.cast(each, np.int64) for each in (begin, end))
    return step, steps.cast(steps("Range", begin, end, 1), np.float64)


def _linear(steps: Steps, away: str) -> str:
    """The weight of a pixel that is so far away."""
    return steps("Max", steps("Sub", np.float64(1), away), np.float64(0))


def _cubic(steps: Steps, away: str, how: NodeAttrs) -> str:
    """The weight of a pixel that is so far away."""
    a = np.float64(how.get("cubic_coeff_a", -0.75))

    def polynomial(*factors: float) -> str:
        found = steps.constant(np.float64(factors[0]))
        for factor in factors[1:]:
            found = steps("Add", steps("Mul", found, away), np.float64(factor))
        return found

    near, far = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    far = steps("Where", steps("Less", away, np.float64(2)), far, np.float64(0))
    return steps("Where", steps("LessOrEqual", away, np.float64(1)), near, far)
