"""Attributes in neutral form: what both generations' op tables are written with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Raw = Mapping[str, Any]
ReadAttrs = Callable[[Raw], dict[str, Any]]


def plain(value: Any) -> Any:
    """A TVM attribute value as Python data: arrays as tuples, IntImm as int, strings as str."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "value"):
        return value.value
    if hasattr(value, "__getitem__"):
        return tuple(plain(v) for v in value)
    return str(value)


def pair(value: Any) -> tuple[int, int]:
    """Strides, dilation or a pool's size: one number stands for both axes."""
    found = plain(value)
    if isinstance(found, int):
        return found, found
    return (found[0], found[0]) if len(found) == 1 else (found[0], found[1])


def quad(value: Any) -> tuple[int, int, int, int]:
    """Padding as (top, left, bottom, right), from one, two or four numbers."""
    found = plain(value)
    found = (found,) if isinstance(found, int) else tuple(found)
    return {1: found * 4, 2: found * 2, 4: found}[len(found)]


def none(_: Raw) -> dict[str, Any]:
    """An op without attributes."""
    return {}


def only(*names: str) -> ReadAttrs:
    """The named attributes as they are."""
    return lambda raw: {name: plain(raw[name]) for name in names}


def conv2d(raw: Raw) -> dict[str, Any]:
    """The eight that a converter needs, and the result's dtype ('' and None: that of the data)."""
    return {
        "strides": pair(raw["strides"]),
        "padding": quad(raw["padding"]),
        "dilation": pair(raw["dilation"]),
        "groups": plain(raw["groups"]),
        "data_layout": plain(raw["data_layout"]),
        "kernel_layout": plain(raw["kernel_layout"]),
        "out_layout": plain(raw["out_layout"]) or plain(raw["data_layout"]),
        "out_dtype": dtype(raw["out_dtype"]),
    }


def pool2d(raw: Raw) -> dict[str, Any]:
    """Max and average pooling alike."""
    return {
        "pool_size": pair(raw["pool_size"]),
        "strides": pair(raw["strides"]),
        "padding": quad(raw["padding"]),
        "dilation": pair(raw["dilation"]),
        "ceil_mode": bool(raw["ceil_mode"]),
        "layout": plain(raw["layout"]),
    }


def avg_pool2d(raw: Raw) -> dict[str, Any]:
    """As pool2d, and whether the padding counts."""
    return {**pool2d(raw), "count_include_pad": bool(raw["count_include_pad"])}


def dtype(value: Any) -> str | None:
    """A dtype's name, or None where it is left open."""
    text = "" if value is None else str(value)
    return text if text not in ("", "void") else None


DEFAULTS: dict[str, dict[str, Any]] = {
    "conv2d": {
        "strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1,
        "data_layout": "NCHW", "kernel_layout": "OIHW", "out_dtype": None,
    },
    "max_pool2d": {
        "pool_size": (2, 2), "strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1),
        "ceil_mode": False, "layout": "NCHW",
    },
    "avg_pool2d": {
        "pool_size": (2, 2), "strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1),
        "ceil_mode": False, "layout": "NCHW", "count_include_pad": False,
    },
    "global_avg_pool2d": {"layout": "NCHW"},
    "dense": {"out_dtype": None},
    "batch_matmul": {"transpose_a": False, "transpose_b": False, "out_dtype": None},
    "bias_add": {"axis": 1},
    "softmax": {"axis": -1},
    "layer_norm": {"axis": -1, "epsilon": 1e-5},
    "batch_norm": {"axis": 1, "epsilon": 1e-5},
    "concatenate": {"axis": 1},
    "clip": {"a_min": 0.0, "a_max": 6.0},
    "leaky_relu": {"alpha": 0.01},
    "lrn": {"size": 5, "axis": 1, "bias": 2.0, "alpha": 1e-5, "beta": 0.75},
    "mean": {"axis": None, "keepdims": False},
    "sum": {"axis": None, "keepdims": False},
    "max": {"axis": None, "keepdims": False},
}  # fmt: skip

NORMALIZERS: dict[str, Callable[[Any], Any]] = {
    "strides": pair,
    "dilation": pair,
    "pool_size": pair,
    "padding": quad,
}


def complete(kind: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an op in a program: the defaults, and what was given, in normal form."""
    merged = {**DEFAULTS.get(kind, {}), **attrs}
    return {k: NORMALIZERS[k](v) if k in NORMALIZERS else v for k, v in merged.items()}
