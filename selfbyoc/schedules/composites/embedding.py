"""Rows of tables of embeddings that lie as products read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ..kernels.rows.embedding import EMBEDDING, EMBEDDING_FEW_BITS
from ..kernels.rows.few_bits.words import WORD
from .dense import check_held, held, of_halves

if TYPE_CHECKING:
    from ...language.nodes import Node


def _check(match: Match) -> None:
    check_held(match)
    require(match.table.is_constant, "the table is no constant: it is packed when a model is built")


def _check_few_bits(match: Match) -> None:
    attrs = match.op("dequantize_groups").attrs
    word = WORD // attrs["bits"]
    require(attrs["group"] % word == 0, f"groups of {attrs['group']} are no whole words of {word}")
    require(
        match.levels.is_constant, "the table is no constant: it is packed when a model is built"
    )


def _of_halves(table: Node, ids: Node) -> Node:
    return op.embedding(of_halves(table), ids)


def _of_cast_halves(table: Node, ids: Node) -> Node:
    return op.embedding(op.cast(table, dtype="float32"), ids)


def _sizes(units: int, depth: int, *places: int, table: str = "float32") -> dict[str, Any]:
    return {
        "table": ((units, depth), table), "ids": (places, "int64"), "constants": ["table"]
    }  # fmt: skip


embedding = Composite(
    "embedding",
    lambda table, ids: op.embedding(held(table), ids),
    kernel=EMBEDDING,
    check=_check,
    why="a table that a product multiplies by, too, is one constant",
    cases=(
        Case(lambda table, ids: op.embedding(table, ids), **_sizes(19, 33, 2, 7)),
        Case(_of_halves, **_sizes(40, 30, 1, 5, table="float16")),
        Case(_of_cast_halves, **_sizes(33, 45, 6, table="float16")),
        Case(lambda table, ids: op.embedding(table, ids), **_sizes(3, 1, 4)),
    ),
)


def _in_groups(bits: int, group: int) -> Program:
    def program(levels: Node, scale: Node, zero: Node, ids: Node) -> Node:
        table = op.dequantize_groups(levels, scale, zero, bits=bits, group=group)
        return op.embedding(table, ids)

    return program


def _levels(
    units: int, depth: int, *places: int, bits: int, group: int, has_one_zero: bool = False
) -> Case:
    factors = units, -(-depth // group)
    return Case(
        _in_groups(bits, group), levels=((units, depth), "uint8"), scale=(factors, "float16"),
        zero=((1, 1) if has_one_zero else factors, "uint8"), ids=(places, "int64"),
        constants=["levels", "scale", "zero"],
    )  # fmt: skip


embedding_few_bits = Composite(
    "embedding_few_bits",
    lambda levels, scale, zero, ids: op.embedding(op.dequantize_groups(levels, scale, zero), ids),
    kernel=EMBEDDING_FEW_BITS,
    check=_check_few_bits,
    why="the table is read in its few bits, and is one constant with a product's weight",
    cases=(
        _levels(19, 70, 2, 7, bits=4, group=32),
        _levels(33, 64, 5, bits=8, group=64, has_one_zero=True),
        _levels(17, 30, 1, 3, bits=2, group=16),
    ),
)
