"""The plan of a dense layer of few bits: levels in words of 32 bits, a scale and a zero point for
each group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .....codegen.info.op_record import describe
from .....codegen.info.ops import Ops
from .....machine import Machine
from .....ops.few_bits import MOST
from .....tvm.own_ops import LEVELS_OF
from ....steps.blocks import divisor
from ....steps.faults import Faults, unlike
from ....steps.tiles import BLOCK
from ...words import machine_of_words
from ..forms import ProductPlan, block_vectors
from ..layout import Rows
from ..plan import lead_of, passes_of_one, plan_rows, product_plan
from ..register_tiles import MOST_WIDE_BLOCKS, partial_sums
from .words import BYTES, WORD, whole_groups

HALF = (1 << 15) - 1  # the largest sum of 16 bits
AHEAD = 24  # lines of a weight that a sum asks for before it reads them, 1.5 KB
LONG = 32 << 10  # bytes of a block, of which several are read at once: streams of some length


@dataclass(frozen=True)
class LevelProducts:
    """Integers are multiplied, for rows are levels, too: by a kind of products of words, so many
    levels of a group summed at once, in 16 bits or not.
    """

    kind: str
    at_once: int
    in_halves: bool = False

    def __str__(self) -> str:
        halves = " in 16 bits" if self.in_halves else ""
        return f"rows of levels, words of {self.word}, sums of {self.at_once}{halves}"

    @property
    def word(self) -> int:
        """Levels of a word of a row."""
        return LEVELS_OF[self.kind]


@dataclass(frozen=True)
class FewBitsPlan:
    """The plan of a product whose weight is of words of levels."""

    product: ProductPlan  # over whole groups, by elements of a row or by words of them
    bits: int
    group: int
    by_panels: bool  # which are of floats; else levels become these in registers
    levels: LevelProducts | None = None  # else rows are floats
    half_scales: bool = True  # those of float16 stay so: the CPU makes floats of them
    ahead: int = 0  # lines of the weight that are prefetched, where one tile of rows reads it

    def __str__(self) -> str:
        how = "panels of floats" if self.by_panels else "each group in registers"
        how = how if self.levels is None else str(self.levels)
        how = f"{how}, {self.ahead} lines prefetched" if self.ahead else how
        return f"{self.product}, {self.bits} bits in groups of {self.group}, {how}"

    @property
    def word(self) -> int:
        """Levels of a word of the weight."""
        return WORD // self.bits

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the product of floats that it is, or of words."""
        attrs, (x, _) = ops.dequantize_groups.attrs, ops.dense.inputs[0]
        yield from unlike("bits", self.bits, attrs["bits"])
        yield from unlike("a group", self.group, attrs["group"])
        yield from unlike("products of levels", self.levels, _products(ops, cpu))
        yield from unlike("scales as halves", self.half_scales, cpu.has_float16)
        yield from unlike(
            "lines prefetched", self.ahead, _ahead(self.product.rows, self.levels, cpu)
        )
        depth, out = whole_groups(x[-1], self.group), ops.dense.outputs[0]
        if not self.by_panels:
            yield from unlike("pieces", self.product.pieces, depth // _at_once(self))
        steps, cpu = _steps(depth, cpu, self.levels)
        inputs = [((*x[:-1], steps), "float32"), ((out[0][-1], steps), "float32")]
        alone = describe(ops.dense.name, "dense", ops.dense.attrs, inputs, [tuple(out)])
        yield from self.product.faults(Ops([alone]), cpu)


def plan(ops: Ops, machine: Machine) -> FewBitsPlan:
    """That of floats, or of words; of few rows, and of levels, in pieces."""
    (shape, _), attrs = ops.dense.outputs[0], ops.dequantize_groups.attrs
    levels = _products(ops, machine)
    depth = whole_groups(ops.dense.inputs[0][0][-1], attrs["group"])
    steps, cpu = _steps(depth, machine, levels)
    rows = plan_rows(lead_of(shape), steps, shape[-1], "float32", cpu)
    ahead, bits = _ahead(rows, levels, machine), attrs["bits"]
    partial = _partial(rows, attrs["group"], cpu) if levels is None else 1
    widest = MOST_WIDE_BLOCKS if levels is None else _widest(rows, depth * bits, ahead)
    passes = passes_of_one(rows, steps, cpu)
    found = product_plan(
        rows, steps, shape[-1], "float32", cpu, "outputs", passes=passes, widest=widest,
        partial=partial,
    )  # fmt: skip
    by_panels = found.group > 1 and levels is None
    halves = machine.has_float16
    made = FewBitsPlan(found, bits, attrs["group"], by_panels, levels, halves, ahead)
    return (
        made if by_panels else replace(made, product=replace(found, pieces=depth // _at_once(made)))
    )


def _ahead(rows: Rows, levels: LevelProducts | None, cpu: Machine) -> int:
    """Lines of a weight that are prefetched. One tile of rows reads it once, from memory; where a
    product and its sum are two instructions, that takes as long as reading, and the hardware's
    prefetcher starts anew at each page of 4 KB (24 layers of 1x896x4864 of 4 bits: 2.54 ms, and
    2.29 so; 1x4864x896 of 8 bits 4.55 and 4.09; 48 lines 2.49 and 4.51; Zen 3, Dec 2026).
    """
    if levels is None or not rows.tasks == rows.each == 1:
        return 0
    return AHEAD if cpu.product(levels.kind).apart else 0


def _partial(rows: Rows, group: int, cpu: Machine) -> int:
    """Partial sums of one row of floats, in a group: half of those that keep the core busy, for it
    makes floats of levels, too. 92 layers of 1x896x4864 of 4 bits, beside four blocks: 0.76 of the
    time, by AVX2 0.85; 46 of 8 bits 0.82 and 0.72; in L3 0.90, 0.98, 0.92 and 0.97 (Zen 5, Dec
    2026).
    """
    return partial_sums(rows, group, cpu.in_flight // (2 * block_vectors(cpu, "float32")))


def _widest(rows: Rows, bits: int, ahead: int) -> int:
    """Blocks of a tile, at most, of so many bits a unit. One row of levels reads its weight from
    end to end: of several blocks at once each is a stream, of a few KB, that the hardware's
    prefetcher learns anew (1x896x4864 of 4 bits in memory: 90 us of 4 blocks, 62 of one, in L3 the
    same; by AVX2's instructions 129 and 73; Zen 4, Nov 2026).

    With lines prefetched that holds for short blocks alone (Zen 3, of one, two and four blocks):
    2048x8192 of 4 bits 2.8, 3.1 and 3.2 ms, 8192x2048 2.4, 2.2 and 2.1, 4864x896 of 8 bits 4.4, 4.2
    and 3.9.
    """
    if rows.height > 1 or (ahead and bits * BLOCK // 8 >= LONG):
        return MOST_WIDE_BLOCKS
    return 1


def _at_once(plan: FewBitsPlan) -> int:
    """Levels of a piece."""
    return plan.group if plan.levels is None else plan.levels.at_once


def _steps(depth: int, cpu: Machine, levels: LevelProducts | None) -> tuple[int, Machine]:
    """Steps of a sum, and the machine as it makes them."""
    if levels is None:
        return depth, cpu
    return depth // levels.word, machine_of_words(cpu, levels.kind)


def _products(ops: Ops, cpu: Machine) -> LevelProducts | None:
    """Sums of 16 bits are of as many levels as fit."""
    if not ops.of("fake_quantize_groups"):
        return None
    bits, group = (ops.dequantize_groups.attrs[name] for name in ("bits", "group"))
    if bits == 8:
        return LevelProducts(cpu.products, group)
    # Two products of -127 to 127 and 0 to 15 fit 16 bits, as those of 7 and 8 bits do.
    kind, word = cpu.products_of_7_bits, WORD // bits
    most = BYTES * (HALF // (2 * MOST * ((1 << bits) - 1)))
    at_once = word * divisor(group // word, most // word)
    pays = cpu.sums_in_halves and at_once >= min(group, most // 2)
    return LevelProducts(kind, at_once, True) if pays else LevelProducts(kind, group)
