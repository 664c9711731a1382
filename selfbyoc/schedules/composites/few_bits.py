"""dense of a weight of few bits in groups (+ bias): MatMulNBits, or DequantizeLinear by blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import either, op
from ..kernels.rows.few_bits.kernel import FEW_BITS_DENSE
from ..kernels.rows.few_bits.words import WORD
from .dense import check_bias
from .sizes import check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node


def _pattern(x: Node, levels: Node, scale: Node, zero: Node, bias: Node) -> Node:
    rows = either(op.fake_quantize_groups(x), x)
    y = op.dense(rows, op.dequantize_groups(levels, scale, zero))
    return either(op.bias_add(y, bias), y)


def check_few_bits(match: Match) -> None:
    """Groups are of whole words, alike in rows and weights."""
    check_sizes(match)
    check_bias(match)
    attrs, weight = match.of("dequantize_groups")[0].attrs, match.levels
    word = WORD // attrs["bits"]
    require(attrs["group"] % word == 0, f"groups of {attrs['group']} are no whole words of {word}")
    for rows in match.of("fake_quantize_groups"):
        found = rows.attrs["group"]
        require(
            found == attrs["group"], f"rows have groups of {found}, weights of {attrs['group']}"
        )
    require(weight.is_constant, "the weight is no constant: it is packed when the model is built")
    for value in (match.x, match.root.outputs[0]):
        require(value.dtype == "float32", f"float32 is multiplied, not {value.type}")


def _dense(bits: int, group: int) -> Program:
    def program(x: Node, levels: Node, scale: Node, zero: Node, bias: Node) -> Node:
        weight = op.dequantize_groups(levels, scale, zero, bits=bits, group=group)
        return op.bias_add(op.dense(x, weight), bias, axis=-1)

    return program


def _rounded(bits: int, group: int) -> Program:
    def program(x: Node, levels: Node, scale: Node, zero: Node) -> Node:
        weight = op.dequantize_groups(levels, scale, zero, bits=bits, group=group)
        return op.dense(op.fake_quantize_groups(x, group=group), weight)

    return program


def _by_levels(
    x: tuple[int, ...], units: int, bits: int, group: int, *, has_one_zero: bool = False
) -> Case:
    factors = (units, -(-x[-1] // group))
    zero = (1, 1) if has_one_zero else factors
    return Case(
        _rounded(bits, group), x=x, levels=((units, x[-1]), "uint8"), scale=factors, zero=zero,
        constants=["levels", "scale", "zero"],
    )  # fmt: skip


def _plain(x: Node, levels: Node, scale: Node, zero: Node) -> Node:
    return op.dense(x, op.dequantize_groups(levels, scale, zero, bits=4, group=32))


def _of(
    x: tuple[int, ...],
    units: int,
    bits: int,
    group: int,
    dtype: str = "float32",
    *,
    has_one_zero: bool = False,
) -> Case:
    factors = (units, -(-x[-1] // group))
    zero = (1, 1) if has_one_zero else factors
    return Case(
        _dense(bits, group), x=x, levels=((units, x[-1]), "uint8"), scale=(factors, dtype),
        zero=(zero, dtype), bias=(units,), constants=["levels", "scale", "zero", "bias"],
    )  # fmt: skip


dense_few_bits = Composite(
    "dense_few_bits",
    _pattern,
    check=check_few_bits,
    kernel=FEW_BITS_DENSE,
    epilogue=True,
    why="the weight is read in its few bits, and becomes floats in registers or in the cache",
    cases=(
        _of((1, 256), 96, 4, 32),
        _of((1, 200), 33, 8, 64),
        _of((5, 96), 40, 4, 32, "float16"),
        _of((2, 19, 100), 50, 4, 32),
        _of((3, 64), 17, 2, 16),
        Case(
            _plain,
            x=(6, 70),
            levels=((19, 70), "uint8"),
            scale=(19, 3),
            zero=(19, 3),
            constants=["levels", "scale", "zero"],
        ),
        _of((128, 512), 256, 4, 128),
        _of((3, 100), 19, 4, 32, has_one_zero=True),
        _of((90, 64), 33, 8, 32, has_one_zero=True),
        _by_levels((1, 256), 96, 4, 32),
        _by_levels((2, 5, 200), 33, 8, 64),
        _by_levels((7, 70), 19, 2, 16),
        _by_levels((67, 160), 48, 4, 32),
        _by_levels((5, 70), 33, 4, 32, has_one_zero=True),
        _by_levels((1, 24), 1, 8, 24, has_one_zero=True),
    ),
)
