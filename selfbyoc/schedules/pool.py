"""Pools on their own: TVM's build leaves them serial under Relax."""

from __future__ import annotations

from typing import Any

from ..composite import Case, Composite
from ..partition.pattern import op

_WHY = "parallel over channels, vectors along the rows"


def _max(**attrs: Any) -> Any:
    return lambda x: op.max_pool2d(x, **attrs)


def _avg(**attrs: Any) -> Any:
    return lambda x: op.avg_pool2d(x, **attrs)


max_pool2d = Composite(
    "max_pool2d",
    lambda x: op.max_pool2d(x),
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
    ),
)

avg_pool2d = Composite(
    "avg_pool2d",
    lambda x: op.avg_pool2d(x),
    why=_WHY,
    cases=(
        Case(_avg(pool_size=3, strides=2, padding=1), name="googlenet", x=(1, 64, 56, 56)),
        Case(
            _avg(pool_size=3, padding=(1, 0, 1, 2), count_include_pad=True),
            name="padded",
            x=(2, 5, 9, 11),
        ),
        Case(_avg(pool_size=7), name="whole", x=(1, 1024, 7, 7)),
    ),
)

global_avg_pool2d = Composite(
    "global_avg_pool2d",
    lambda x: op.global_avg_pool2d(x),
    why=_WHY,
    cases=(
        Case(x=(1, 1024, 7, 7)),
        Case(x=(2, 3, 13, 17)),
        Case(x=(1, 64, 56, 56)),
    ),
)
