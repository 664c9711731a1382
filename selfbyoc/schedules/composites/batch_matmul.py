"""Products of matrices that are both computed: TVM's own schedule multiplies them one by one."""

from __future__ import annotations

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ...tvm.types import Attr
from ..kernels.matmul.kernel import MATMUL
from .sizes import check_sizes

LEAST_COLUMNS = 4  # as lanes


def _check(match: Match) -> None:
    check_sizes(match)
    (matmul,) = match.own.ops
    dtypes = sorted({v.dtype for v in (*matmul.inputs, *matmul.outputs)})
    require(dtypes == ["float32"], f"only float32 is scheduled, found {', '.join(dtypes)}")
    columns = matmul.outputs[0].shape[-1]
    require(columns >= LEAST_COLUMNS, f"{columns} columns fill no vector")


def _product(**attrs: Attr) -> Program:
    return lambda x, y: op.batch_matmul(x, y, **attrs)


batch_matmul = Composite(
    "batch_matmul",
    lambda x, y: op.batch_matmul(x, y),
    check=_check,
    kernel=MATMUL,
    epilogue=True,
    why="register tiles, and panels of the right side where its columns lie apart",
    cases=(
        Case(_product(), name="few-columns", x=(8, 50, 19), y=(8, 19, 19)),
        Case(_product(transpose_a=True), name="over-rows", x=(8, 197, 19), y=(8, 197, 19)),
        Case(_product(transpose_b=True), name="turned", x=(4, 33, 64), y=(4, 70, 64)),
        Case(_product(), name="one", x=(1, 100, 60), y=(1, 60, 150)),
        Case(_product(), name="many-columns", x=(3, 7, 9), y=(3, 9, 197)),
        Case(
            lambda x, y: op.batch_matmul(x, op.half_factor(y)), name="bfloat16",
            x=(2, 37, 33), y=(2, 33, 45), generations=("relax",),
        ),
        Case(
            _product(transpose_a=True, transpose_b=True), name="both-turned",
            x=(2, 31, 13), y=(2, 48, 31),
        ),
    ),
)  # fmt: skip
