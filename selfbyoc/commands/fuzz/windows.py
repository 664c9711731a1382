"""The types of what convolutions and pools give."""

from __future__ import annotations

from collections.abc import Sequence

from ...ops.resampling import axes_of
from ...ops.resize import why_not
from .types import Attrs, Type, check


def _spatial(extent: int, kernel: int, pads: int, stride: int, dilation: int, up: bool) -> int:
    room = extent + pads - dilation * (kernel - 1) - 1
    check(room >= 0, "the window is larger than the image")
    check(min(kernel, stride, dilation) > 0, "a window of nothing")
    return (room + (stride - 1 if up else 0)) // stride + 1


def _window(shape: tuple[int, ...], layout: str, kernel: Sequence[int], a: Attrs) -> dict[str, int]:
    check(len(shape) == 4, f"an image of {len(shape)} axes")
    at = dict(zip(layout, shape, strict=True))
    top, left, bottom, right = a["padding"]
    up = bool(a.get("ceil_mode"))
    for n, (axis, pads) in enumerate((("H", top + bottom), ("W", left + right))):
        at[axis] = _spatial(at[axis], kernel[n], pads, a["strides"][n], a["dilation"][n], up)
    return at


def conv2d(ins: Sequence[Type], a: Attrs) -> Type:
    """Of an image in any layout."""
    (shape, dtype), (weight, other) = ins
    check(dtype == other, f"{dtype} and {other}")
    kernel = dict(zip(a["kernel_layout"], weight, strict=True))
    channels = dict(zip(a["data_layout"], shape, strict=True))["C"]
    groups = a["groups"]
    check(groups > 0 and kernel["I"] * groups == channels, "input channels and groups")
    check(kernel["O"] % groups == 0, "output channels and groups")
    at = _window(shape, a["data_layout"], (kernel["H"], kernel["W"]), a)
    at["C"] = kernel["O"]
    return tuple(at[axis] for axis in a["data_layout"]), a["out_dtype"] or dtype


def transposed(ins: Sequence[Type], a: Attrs) -> Type:
    """Attributes are of two axes; one of rows takes the second."""
    (shape, dtype), (weight, other) = ins
    check(dtype == other == "float32", f"{dtype} and {other}")
    check(a["groups"] == 1 and shape[1] == weight[0], "input channels and groups")
    pads, sizes = a["padding"], []
    for n, (extent, kernel) in enumerate(zip(shape[2:], weight[2:], strict=True), 4 - len(shape)):
        step, more = a["strides"][n], a["output_padding"][n]
        check(a["dilation"][n] == 1 and 0 <= more < step, "dilation and output padding")
        check(max(pads[n], pads[n + 2]) < kernel, "padding of a transposed convolution")
        sizes.append((extent - 1) * step - pads[n] - pads[n + 2] + kernel + more)
    check(min(sizes) > 0, "an empty result")
    return (shape[0], weight[1], *sizes), dtype


def max_pool(ins: Sequence[Type], a: Attrs) -> Type:
    """Of an image of floats, or of bytes."""
    shape, dtype = ins[0]
    check(dtype.startswith("float") or dtype in ("int8", "uint8"), f"a pool of {dtype}")
    return _pooled(shape, a), dtype


def avg_pool(ins: Sequence[Type], a: Attrs) -> Type:
    """Of an image of floats, or of int32."""
    shape, dtype = ins[0]
    check(dtype.startswith("float") or dtype == "int32", f"a pool of {dtype}")
    return _pooled(shape, a), dtype


def _pooled(shape: tuple[int, ...], a: Attrs) -> tuple[int, ...]:
    at = _window(shape, a["layout"], a["pool_size"], a)
    size, pads = a["pool_size"], a["padding"]
    # A window of padding alone has no meaning that all agree on.
    check(max(pads[0], pads[2]) < size[0] and max(pads[1], pads[3]) < size[1], "all padding")
    before = dict(zip(a["layout"], shape, strict=True))
    for n, axis in enumerate("HW"):  # nor has one that begins in the padding at the end
        last = (at[axis] - 1) * a["strides"][n]
        check(last < before[axis] + pads[n], "the last window lies in the padding")
    return tuple(at[axis] for axis in a["layout"])


def global_pool(ins: Sequence[Type], a: Attrs) -> Type:
    """Of an image: 1 x 1."""
    shape, dtype = ins[0]
    check(len(shape) == 4 and (dtype.startswith("float") or dtype == "int32"), "no image")
    return tuple(1 if x in "HW" else e for x, e in zip(a["layout"], shape, strict=True)), dtype


def resize(ins: Sequence[Type], a: Attrs) -> Type:
    """Of an image of floats, or of bytes, where all CPUs take the same pixels."""
    shape, dtype = ins[0]
    moves = dtype in ("int8", "uint8") and a["method"] != "linear"
    check(len(shape) == 4 and (dtype.startswith("float") or moves), "no image")
    check(not why_not(a) and min(a["size"]) > 0, "an unknown way to resize")
    for axis in axes_of(a, shape):
        check(a["method"] == "linear" or axis.is_certain, "pixels that depend on the CPU")
        # TVM divides by what lies between the corners.
        check(axis.mode != "align_corners" or axis.out > 1, "both corners are one pixel")
    at = dict(zip(a["layout"], shape, strict=True)) | dict(zip("HW", a["size"], strict=True))
    return tuple(at[axis] for axis in a["layout"]), dtype
