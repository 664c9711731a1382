"""Averages of levels and of integers: what quantised models write between two QuantizeLinears, or
in int32.

Bytes are read and summed in int32; what comes after, as the next QuantizeLinear or a requantize,
joins the kernel as elementwise ops do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import either, op
from ...tvm.types import Attr
from ..kernels.pool.integers import INTEGER_POOL, POOLS, QUANTIZED_POOL
from ..kernels.words import BYTE
from .pool import check_window

if TYPE_CHECKING:
    from ...language.nodes import Node

Average = Callable[["Node"], "Node"]
_MOST = (1 << 31) // 255  # levels of a sum that int32 holds


def _average(x: Node) -> Node:
    return either(op.avg_pool2d(x), op.global_avg_pool2d(x))


def _check_layout(match: Match) -> None:
    """An image as it lies may be channels last, too."""
    (pool,) = (call for call in match.ops if call.kind in POOLS)
    layouts = ("NCHW",) if pool.kind == "avg_pool2d" else ("NCHW", "NHWC")
    check_window(pool, *layouts)


def _check_integers(match: Match) -> None:
    require(match.x.dtype == "int32", f"only int32 is summed so, found {match.x.type}")
    _check_layout(match)


def _check_levels(match: Match) -> None:
    x, result = match.x, match.root.outputs[0]
    require(x.dtype in BYTE, f"only int8 and uint8 are summed so, found {x.type}")
    axis = match.op("dequantize").attrs["axis"]
    for name in ("x_scale", "x_zero"):
        value = getattr(match, name)
        why = f"{name} has {value.type} along axis {axis}, not one element"
        require(math.prod(value.shape) == 1, why)
    require(result.dtype == "float32", f"levels are dequantised to {result.dtype}, not float32")
    (pool,) = (call for call in match.ops if call.kind in POOLS)
    size = pool.attrs["pool_size"] if pool.kind == "avg_pool2d" else x.shape[1:]
    require(math.prod(size) < _MOST, f"sums of {math.prod(size)} levels may leave int32")
    _check_layout(match)


def _levels(how: Average) -> Program:
    # Of a power of two, so that the comparison can be exact.
    return lambda x: how(op.dequantize(x, 2.0**-4, 7))


def _avg(**attrs: Attr) -> Average:
    return lambda x: op.avg_pool2d(x, **attrs)


def _global(layout: str = "NCHW") -> Average:
    return lambda x: op.global_avg_pool2d(x, layout=layout)


_WINDOWS = (
    ("same", _avg(pool_size=3, padding=1), (1, 64, 28, 28)),
    ("strided", _avg(pool_size=3, strides=2, padding=(0, 0, 1, 1)), (2, 5, 27, 23)),
    ("counted", _avg(pool_size=(2, 3), padding=1, count_include_pad=True), (1, 7, 9, 6)),
    ("narrow", _avg(pool_size=2, strides=2), (1, 19, 6, 6)),
    ("whole", _avg(pool_size=(7, 5)), (2, 37, 7, 5)),
    ("global", _global(), (1, 130, 7, 7)),
    ("global-tail", _global(), (2, 3, 13, 17)),
    ("channels-last", _global("NHWC"), (2, 7, 5, 37)),
)

avg_pool2d_int8 = Composite(
    "avg_pool2d_int8",
    lambda x, x_scale, x_zero: _average(op.dequantize(x, x_scale, x_zero)),
    kernel=QUANTIZED_POOL,
    check=_check_levels,
    epilogue=True,
    why="bytes are summed in int32, and no float image is stored",
    cases=tuple(Case(_levels(how), name=name, x=(shape, "uint8")) for name, how, shape in _WINDOWS),
)

avg_pool2d_integers = Composite(
    "avg_pool2d_integers",
    _average,
    kernel=INTEGER_POOL,
    check=_check_integers,
    epilogue=True,
    prologue=("x",),
    why="bytes are read and written, and the int32 sums never leave the registers",
    cases=tuple(Case(how, name=name, x=(shape, "int32")) for name, how, shape in _WINDOWS),
)
