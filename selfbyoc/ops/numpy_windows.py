"""Convolutions and pools in NumPy, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import OpCall

Array = np.ndarray


def _windows(
    x: Array,
    pads: Sequence[int],
    size: Sequence[int],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    fill: float,
) -> Array:
    """[N, C, OH, OW, KH, KW] of an NCHW array."""
    padded = _padded(x, pads, fill)
    span = [(s - 1) * d + 1 for s, d in zip(size, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(padded, span, axis=(2, 3))
    return view[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]


def _padded(x: Array, pads: Sequence[int], fill: float) -> Array:
    top, left, bottom, right = pads
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)


def _to(x: Array, source: str, wanted: str) -> Array:
    return x.transpose([source.index(letter) for letter in wanted])


def conv2d(ins: Sequence[Array], call: OpCall) -> Array:
    """Any layout, any groups."""
    a = call.attrs
    x, w = _to(ins[0], a["data_layout"], "NCHW"), _to(ins[1], a["kernel_layout"], "OIHW")
    if np.issubdtype(x.dtype, np.integer):
        x, w = x.astype(call.outputs[0].dtype), w.astype(call.outputs[0].dtype)
    view = _windows(
        x, a["padding"], w.shape[2:], a["strides"], a["dilation"], a.get("pad_value", 0)
    )
    groups = np.split(view, a["groups"], axis=1)
    kernels = np.split(w, a["groups"], axis=0)
    parts = [
        np.einsum("nchwij,ocij->nohw", v, k, optimize=True)
        for v, k in zip(groups, kernels, strict=True)
    ]
    out = np.concatenate(parts, axis=1)
    return out.transpose(["NCHW".index(letter) for letter in a["out_layout"] or a["data_layout"]])


def _whole_windows(x: Array, call: OpCall) -> tuple[int, int, int, int]:
    """The padding with what ceil_mode adds at the end."""
    a, axes = call.attrs, [call.attrs["layout"].index(letter) for letter in "HW"]
    top, left, bottom, right = a["padding"]
    ends = []
    for n, (before, after) in enumerate(((top, bottom), (left, right))):
        span = (a["pool_size"][n] - 1) * a["dilation"][n] + 1
        reach = (call.outputs[0].shape[axes[n]] - 1) * a["strides"][n] + span
        ends.append(max(after, reach - x.shape[2 + n] - before))
    return top, left, ends[0], ends[1]


def quotient_of(total: Array, count: Array | int, dtype: np.dtype) -> Array:
    """Sums over the number of their terms; of integers rounded towards zero, in their dtype."""
    if not np.issubdtype(dtype, np.integer):
        return total / count
    wide = np.asarray(total).astype(dtype).astype(np.int64)  # a sum wraps around, as in TVM
    count = np.asarray(count).astype(np.int64)
    return (np.sign(wide) * (np.abs(wide) // count)).astype(dtype)


def mean(x: Array, axis: Any, keepdims: bool) -> Array:
    """Along axes."""
    if not np.issubdtype(x.dtype, np.integer):
        return x.mean(axis=axis, keepdims=keepdims)
    total = x.sum(axis=axis, keepdims=keepdims, dtype=np.int64)
    return quotient_of(total, x.size // max(1, total.size), x.dtype)


def max_pool2d(ins: Sequence[Array], call: OpCall) -> Array:
    """The padding never wins."""
    a = call.attrs
    x = _to(ins[0], a["layout"], "NCHW")
    fill = -np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(x.dtype).min
    view = _windows(x, _whole_windows(x, call), a["pool_size"], a["strides"], a["dilation"], fill)
    out = view.max(axis=(4, 5))[:, :, : _hw(call)[0], : _hw(call)[1]]
    return out.transpose(["NCHW".index(letter) for letter in a["layout"]])


def _hw(call: OpCall) -> tuple[int, int]:
    layout, shape = call.attrs["layout"], call.outputs[0].shape
    return shape[layout.index("H")], shape[layout.index("W")]


def avg_pool2d(ins: Sequence[Array], call: OpCall) -> Array:
    """Over the elements inside, or over the padding too; nothing but what is outside is 0."""
    a = call.attrs
    x = _to(ins[0], a["layout"], "NCHW")
    pads = _whole_windows(x, call)
    own = a["padding"] if a["count_include_pad"] else (0, 0, 0, 0)
    inside = _padded(np.ones((1, 1, *x.shape[2:])), own, 1)
    rest = tuple(whole - counted for whole, counted in zip(pads, own, strict=True))
    window = (a["pool_size"], a["strides"], a["dilation"], 0)
    count = np.maximum(_windows(inside, rest, *window).sum(axis=(4, 5)), 1)
    wide = np.int64 if np.issubdtype(x.dtype, np.integer) else None
    total = _windows(x, pads, *window).sum(axis=(4, 5), dtype=wide)
    h, w = _hw(call)
    out = quotient_of(total[:, :, :h, :w], count[:, :, :h, :w], x.dtype)
    return out.transpose(["NCHW".index(letter) for letter in a["layout"]])
