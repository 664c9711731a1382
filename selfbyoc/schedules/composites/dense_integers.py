"""dense of bytes (+ bias) whose sums stay in int32: a qnn.dense before its qnn.requantize.

What brings the sums back to 8 bits (a requantize, a shift, clip and cast) joins the kernel as
elementwise ops do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import either, op
from ...tvm.types import Shape
from ..kernels.rows.quantized import INTEGER_DENSE
from ..kernels.words import BYTE
from .dense import check_bias
from .levels import check_sums
from .sizes import check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node


def _pattern(x: Node, weight: Node, bias: Node) -> Node:
    y = op.dense(x, weight)
    return either(op.bias_add(y, bias), y)


def _check(match: Match) -> None:
    check_sizes(match)
    check_bias(match)
    require(match.x.dtype in BYTE, f"only int8 and uint8 are multiplied, found {match.x.type}")
    # One of uint8 counts from 128 where it is packed.
    require(match.weight.dtype == "int8", f"a weight is of int8, found {match.weight.type}")
    check_sums(match.weight)
    sums = match.op("dense").outputs[0].dtype
    require(sums == "int32", f"sums are int32, found {sums}")


def _sums(x: Node, weight: Node) -> Node:
    return op.dense(x, weight, out_dtype="int32")


def _biased(x: Node, weight: Node, bias: Node) -> Node:
    return op.bias_add(_sums(x, weight), bias, axis=-1)


def _of(program: Program, x: Shape, units: int, dtype: str = "int8", **more: Shape) -> Case:
    given: dict[str, Any] = {name: (shape, "int32") for name, shape in more.items()}
    return Case(
        program, x=(x, dtype), weight=((units, x[-1]), "int8"), **given,
        constants=["weight", *given],
    )  # fmt: skip


dense_integers = Composite(
    "dense_integers",
    _pattern,
    check=_check,
    kernel=INTEGER_DENSE,
    epilogue=True,
    why="bytes are multiplied several at a time, and what narrows the sums is done in registers",
    cases=(
        _of(_biased, (7, 33), 17, bias=(17,)),
        _of(_biased, (1, 1280), 1000, bias=(1000,)),
        _of(_sums, (2, 19, 64), 48),
        _of(_biased, (128, 256), 96, bias=(96,)),
        Case(_sums, x=((5, 37), "int8"), weight=((20, 37), "int8")),
    ),
)
