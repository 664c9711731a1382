"""Rows of a table that lies as a product reads it: one copy of a weight serves both.

Of a packed table a row is an element of each cache line, which the prefetcher reads like others: a
token reads 57 KB for 896 floats, of 4 bits 7 KB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....codegen.info.ops import Ops
from ....language.kernel import Kernel
from ....machine import Machine
from ....ops.kind import broadcast
from ....ops.movement import row_of
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Schedule, Tensor
from ...steps.blocks import Facts, others
from ...steps.faults import Faults, unlike
from ...steps.parallel import parallel_over
from ...steps.tiles import BLOCK
from ..bfloat16 import WORD
from .few_bits.words import WORD as BITS_OF_WORD
from .few_bits.words import lowest_bit, pack_levels
from .halves import products_of
from .pack import pack_factor

Read = Callable[[PrimExpr, PrimExpr], PrimExpr]  # a row, and a place in it -> element


@dataclass(frozen=True)
class EmbeddingPlan:
    """How many neighbours of a row lie in a word: the kind of its `products`, or levels of so many
    `bits` in groups.
    """

    units: int
    products: str = ""
    bits: int = 0
    group: int = 0

    def __str__(self) -> str:
        if self.bits:
            return f"rows of {self.bits} bits in groups of {self.group}"
        return f"rows of {self.products or 'elements'}"

    @property
    def word(self) -> int:
        """Neighbours in a word."""
        return BITS_OF_WORD // self.bits if self.bits else WORD if self.products else 1

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of a table that is packed in another way."""
        yield from unlike("an embedding", self, plan(ops, cpu))


@dataclass(frozen=True)
class Embedding:
    """The rows."""

    result: Tensor


def plan(ops: Ops, machine: Machine) -> EmbeddingPlan:
    """As the table lies."""
    units = ops.embedding.inputs[0][0][0]
    if levels := ops.of("dequantize_groups"):
        return EmbeddingPlan(units, bits=levels[0].attrs["bits"], group=levels[0].attrs["group"])
    return EmbeddingPlan(units, products_of(ops, "table", machine))


def compute(table: Tensor, ids: Tensor, *, ops: Ops, plan: EmbeddingPlan) -> Embedding:
    """Of [units/16, depth, 16] of floats or halves, or of words of two bfloat16."""

    def element(unit: PrimExpr, k: PrimExpr) -> PrimExpr:
        block, lane = tir.floordiv(unit, BLOCK), tir.floormod(unit, BLOCK)
        if not plan.products:
            return table(block, k, lane).astype("float32")
        word, high = table(block, tir.floordiv(k, WORD), lane), tir.floormod(k, WORD)
        return tir.reinterpret("float32", (word >> (high * 16)) << 16)

    return _rows(element, ids, ops, plan)


def compute_few_bits(
    levels: Tensor, scale: Tensor, zero: Tensor, ids: Tensor, *, ops: Ops, plan: EmbeddingPlan
) -> Embedding:
    """Of [units/16, words, 16]; scales and zero points are [units, groups]."""
    most = tir.const((1 << plan.bits) - 1, "int32")

    def element(unit: PrimExpr, k: PrimExpr) -> PrimExpr:
        at = unit, tir.floordiv(k, plan.group)
        block, lane = tir.floordiv(unit, BLOCK), tir.floormod(unit, BLOCK)
        word = levels(block, tir.floordiv(k, plan.word), lane)
        level = (word >> lowest_bit(tir.floormod(k, plan.word), plan.bits)) & most
        factor, point = (broadcast(each, at).astype("float32") for each in (scale, zero))
        return (level.astype("float32") - point) * factor

    return _rows(element, ids, ops, plan)


def _rows(read: Read, ids: Tensor, ops: Ops, plan: EmbeddingPlan) -> Embedding:
    def element(*i: PrimExpr) -> PrimExpr:
        return read(row_of(ids, i[:-1], plan.units), i[-1])

    return Embedding(te.compute(ops.embedding.outputs[0][0], element, name="result"))


def schedule(sch: Schedule, stages: Embedding, plan: EmbeddingPlan) -> None:
    """Rows in parallel; the neighbours of a word together."""
    for block in others(sch, stages):  # a table that is packed at every call
        parallel_over(sch, list(sch.get_loops(block.block)), block.steps)
    result = Facts(sch, stages.result)
    *lead, k = sch.get_loops(result.block)
    if result.shape[-1] % plan.word == 0:
        _, inner = sch.split(k, [None, plan.word])
        sch.unroll(inner)
    if lead:
        parallel_over(sch, lead, result.size)


EMBEDDING = Kernel(plan, compute, schedule, pack={"table": pack_factor})
EMBEDDING_FEW_BITS = Kernel(plan, compute_few_bits, schedule, pack={"levels": pack_levels})
