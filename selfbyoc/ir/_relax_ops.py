"""Relax: which of its ops are which neutral kind, and their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import attrs as A


class Raw(Mapping[str, Any]):
    """An attribute node as a mapping: 0.27's have neither keys() nor []."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __getitem__(self, name: str) -> Any:
        return getattr(self.node, name)

    def __iter__(self) -> Any:
        raise TypeError("the names of an attribute node are not listed")

    def __len__(self) -> int:
        raise TypeError("the names of an attribute node are not counted")


def _reduce(raw: A.Raw) -> dict[str, Any]:
    return {"axis": A.plain(raw["axis"]), "keepdims": bool(raw["keepdims"])}


def _layer_norm(raw: A.Raw) -> dict[str, Any]:
    axes = A.plain(raw["axes"])
    found = A.only("epsilon", "center", "scale")(raw)
    return {"axis": axes[0] if len(axes) == 1 else axes, **found}


# Relax op -> (neutral kind, attributes). What is not here is read under its own name and never
# matches.
READ: dict[str, tuple[str, A.ReadAttrs]] = {
    "abs": ("abs", A.none),
    "add": ("add", A.none),
    "astype": ("cast", lambda raw: {"dtype": str(raw["dtype"])}),
    "broadcast_to": ("broadcast_to", A.none),
    "clip": ("clip", A.none),
    "concat": ("concatenate", A.only("axis")),
    "divide": ("divide", A.none),
    "erf": ("erf", A.none),
    "exp": ("exp", A.none),
    "expand_dims": ("reshape", A.none),
    "flatten": ("reshape", A.none),
    "log": ("log", A.none),
    "matmul": ("matmul", lambda raw: {"out_dtype": A.dtype(raw["out_dtype"])}),
    "max": ("max", _reduce),
    "maximum": ("maximum", A.none),
    "mean": ("mean", _reduce),
    "minimum": ("minimum", A.none),
    "multiply": ("multiply", A.none),
    "negative": ("negative", A.none),
    "nn.adaptive_avg_pool2d": ("adaptive_avg_pool2d", A.only("output_size", "layout")),
    "nn.avg_pool2d": ("avg_pool2d", A.avg_pool2d),
    "nn.avg_pool3d": (
        "nn.avg_pool3d",
        A.only("pool_size", "strides", "dilation", "padding", "count_include_pad", "layout"),
    ),
    "nn.batch_flatten": ("reshape", A.none),
    "nn.batch_norm": ("batch_norm", A.only("axis", "epsilon", "center", "scale", "training")),
    "nn.conv2d": ("conv2d", A.conv2d),
    "nn.gelu": ("gelu", A.none),
    "nn.layer_norm": ("layer_norm", _layer_norm),
    "nn.leakyrelu": ("leaky_relu", A.only("alpha")),
    "nn.max_pool2d": ("max_pool2d", A.pool2d),
    "nn.relu": ("relu", A.none),
    "nn.relu6": ("clip", lambda raw: {"a_min": 0.0, "a_max": 6.0}),
    "nn.silu": ("silu", A.none),
    "nn.softmax": ("softmax", A.only("axis")),
    "permute_dims": ("transpose", A.only("axes")),
    "power": ("power", A.none),
    "reshape": ("reshape", A.none),
    "right_shift": ("right_shift", A.none),
    "round": ("round", lambda raw: {"ties": "even"}),
    "rsqrt": ("rsqrt", A.none),
    "sigmoid": ("sigmoid", A.none),
    "split": ("split", A.only("indices_or_sections", "axis")),
    "sqrt": ("sqrt", A.none),
    "squeeze": ("reshape", A.none),
    "stack": ("stack", A.only("axis")),
    "subtract": ("subtract", A.none),
    "sum": ("sum", _reduce),
    "tanh": ("tanh", A.none),
}
