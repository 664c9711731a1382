"""Pooling under windows, and over the whole image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import OpCall
from .attrs import avg_pool2d_attrs, like_layout, must, only, pool2d_attrs
from .kind import Array, OpKind, form, in_both
from .numpy_windows import avg_pool2d as numpy_avg_pool2d
from .numpy_windows import max_pool2d as numpy_max_pool2d
from .numpy_windows import mean
from .reduce import global_avg_pool2d
from .windows import avg_pool2d, max_pool2d

SUMS = "out_elemwise_fusable"
_ATTRS: dict[str, Any] = {
    "pool_size": (2, 2), "strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1),
    "ceil_mode": False, "layout": "NCHW",
}  # fmt: skip
_LAYOUT = {"out_layout": like_layout}


def _spatial_mean(ins: Sequence[Array], call: OpCall) -> Array:
    axes = tuple(call.attrs["layout"].index(letter) for letter in "HW")
    return mean(ins[0], axes, True)


KINDS = (
    OpKind(
        "max_pool2d",
        max_pool2d,
        numpy_max_pool2d,
        attrs=_ATTRS,
        **in_both("nn.max_pool2d", pool2d_attrs, needs=_LAYOUT, idle=("count_include_pad",)),
        fuses=SUMS,
        takes="x",
        doc="The largest element of images under each window; padding never wins.",
    ),
    OpKind(
        "avg_pool2d",
        avg_pool2d,
        numpy_avg_pool2d,
        attrs={**_ATTRS, "count_include_pad": False},
        **in_both("nn.avg_pool2d", avg_pool2d_attrs, needs=_LAYOUT),
        fuses=SUMS,
        takes="x",
        doc="The mean of images under each window.",
    ),
    OpKind(
        "global_avg_pool2d",
        global_avg_pool2d,
        _spatial_mean,
        attrs={"layout": "NCHW"},
        relay=form("nn.global_avg_pool2d", only("layout"), needs=_LAYOUT),
        fuses=SUMS,
        takes="x",
        doc="The mean of each channel of images; height and width stay, with one element.",
        spelled={"relax": "nn.adaptive_avg_pool2d with output_size=(1, 1)"},
    ),
    # Only ever read as others.
    OpKind(
        "adaptive_avg_pool2d",
        **in_both("nn.adaptive_avg_pool2d", only("output_size", "layout"), needs=_LAYOUT),
        fuses=SUMS,
    ),
    OpKind(
        "nn.avg_pool3d",
        relax=form(
            "nn.avg_pool3d",
            only("pool_size", "strides", "dilation", "padding", "count_include_pad", "layout"),
            needs={**_LAYOUT, "ceil_mode": must(False)},
        ),
    ),
)
