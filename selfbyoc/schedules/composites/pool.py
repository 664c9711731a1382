"""Pools on their own: TVM's build leaves them serial under Relax."""

from __future__ import annotations

from ...graph import OpCall
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ...tvm.types import Attr
from ..kernels.pool.kernel import AVG_POOL, MAX_POOL
from ..kernels.words import BYTE
from .sizes import check_rows

_WHY = "parallel over channels, in vectors: rows first, then columns, or pixels as flat lanes"


def _float_nchw(match: Match) -> None:
    _is_nchw(match, "float32")


def _max_nchw(match: Match) -> None:
    _is_nchw(match, "float32", *BYTE)


def _is_nchw(match: Match, *dtypes: str) -> None:
    (pool,) = match.ops
    dtype = pool.inputs[0].dtype
    require(dtype in dtypes, f"only {', '.join(dtypes)} is scheduled, found {dtype}")
    check_window(pool, "NCHW")


def check_window(pool: OpCall, *layouts: str) -> None:
    """Layouts and windows that the kernels of pools have."""
    layout, dilation = pool.attrs["layout"], pool.attrs.get("dilation", (1, 1))
    require(layout in layouts, f"only {' and '.join(layouts)} is scheduled, found {layout}")
    require(
        pool.kind == "max_pool2d" or tuple(dilation) == (1, 1),
        f"an average over a dilated window is not scheduled, found dilation {dilation}",
    )


def _max(**attrs: Attr) -> Program:
    return lambda x: op.max_pool2d(x, **attrs)


def _avg(**attrs: Attr) -> Program:
    return lambda x: op.avg_pool2d(x, **attrs)


max_pool2d = Composite(
    "max_pool2d",
    lambda x: op.max_pool2d(x),
    kernel=MAX_POOL,
    check=_max_nchw,
    epilogue=check_rows,
    why=_WHY,
    cases=(
        Case(
            _max(pool_size=3, strides=2, padding=(0, 0, 1, 1)),
            name="googlenet",
            x=(1, 64, 112, 112),
        ),
        Case(_max(pool_size=3, padding=1), name="same", x=(1, 192, 28, 28)),
        Case(
            _max(pool_size=(2, 3), strides=(2, 1), padding=(1, 0, 0, 2)),
            name="asymmetric",
            x=(2, 5, 13, 11),
        ),
        Case(_max(pool_size=3, strides=2, ceil_mode=True), name="ceil", x=(1, 3, 14, 17)),
        Case(
            _max(pool_size=3, strides=2, padding=1),
            name="bytes",
            x=((1, 37, 27, 29), "uint8"),
        ),
        Case(_max(pool_size=(3, 2), padding=1), name="int8", x=((1, 19, 13, 11), "int8")),
    ),
)

avg_pool2d = Composite(
    "avg_pool2d",
    lambda x: op.avg_pool2d(x),
    kernel=AVG_POOL,
    check=_float_nchw,
    epilogue=check_rows,
    why=_WHY,
    cases=(
        Case(_avg(pool_size=3, strides=2, padding=1), name="googlenet", x=(1, 64, 56, 56)),
        Case(
            _avg(pool_size=3, padding=(1, 0, 1, 2), count_include_pad=True),
            name="padded",
            x=(2, 5, 9, 11),
        ),
        Case(_avg(pool_size=7), name="whole", x=(1, 1024, 7, 7)),
        Case(_avg(pool_size=(7, 6), padding=(0, 1, 1, 0)), name="reaching-out", x=(2, 37, 6, 5)),
    ),
)

global_avg_pool2d = Composite(
    "global_avg_pool2d",
    lambda x: op.global_avg_pool2d(x),
    check=_float_nchw,
    epilogue=True,
    prologue=("x",),
    why="parallel over channels, vectors along the flat image",
    cases=(
        Case(x=(1, 1024, 7, 7)),
        Case(x=(2, 3, 13, 17)),
        Case(x=(1, 64, 56, 56)),
    ),
)
