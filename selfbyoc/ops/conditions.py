"""Comparisons of elements, and the choice between two by a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..tvm import tir
from .kind import BROADCASTS, Array, OpKind, elementwise, in_both, pure

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr


def _comparison(
    name: str,
    sign: str,
    compute: Callable[[PrimExpr, PrimExpr], PrimExpr],
    numpy: Callable[..., Array],
) -> OpKind:
    return OpKind(
        name, elementwise(compute), pure(numpy), inputs=2, fuses=BROADCASTS,
        doc=f"x {sign} y, a condition, broadcast as in NumPy.", **in_both(name),
    )  # fmt: skip


KINDS = (
    _comparison("equal", "==", tir.EQ, np.equal),
    _comparison("greater", ">", tir.GT, np.greater),
    _comparison("greater_equal", ">=", tir.GE, np.greater_equal),
    _comparison("less", "<", tir.LT, np.less),
    _comparison("less_equal", "<=", tir.LE, np.less_equal),
    _comparison("not_equal", "!=", tir.NE, np.not_equal),
    OpKind(
        "where", elementwise(tir.Select), pure(np.where), inputs=3, fuses=BROADCASTS,
        takes="condition x y", **in_both("where"),
        doc="x where the condition holds, y elsewhere, broadcast as in NumPy.",
    ),
)  # fmt: skip
