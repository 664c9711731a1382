"""A dense layer of few bits: levels in words of 32 bits, a scale and a zero point for each group.

Few rows: the sums of a group are of the levels as they are, and what its scale and zero point make
of them is added up,

    sum over groups of scale * (sum of x * level - zero * sum of x).

Many rows: a piece of a panel becomes floats once, which all tiles of rows multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....codegen.info.op_record import describe
from ....codegen.info.ops import Ops
from ....language.kernel import Kernel
from ....machine import Machine
from ....tvm import te, tir
from ....tvm.types import Loop, PrimExpr, Schedule, Tensor
from ...steps.blocks import Facts
from ...steps.faults import Faults, unlike
from ...steps.loops import Finish, vectorize
from ...steps.tensors import extents, reduce_axes
from ...steps.tiles import BLOCK
from .bits import WORD, fraction, pack_levels, pack_scale, pack_zero, whole_groups
from .compute import epilogue, in_tiles, result
from .forms import ProductPlan
from .plan import lead_of, passes_of_one, plan_rows, product_plan
from .product import in_registers, pieces_around
from .schedule import in_parallel, prepare, store
from .tiles import Loops, tile_rows


@dataclass(frozen=True)
class FewBitsPlan:
    """The plan of a product whose weight is of words of levels."""

    product: ProductPlan  # over whole groups
    bits: int
    group: int
    by_panels: bool  # which are of floats; else levels become these in registers

    def __str__(self) -> str:
        how = "panels of floats" if self.by_panels else "each group in registers"
        return f"{self.product}, {self.bits} bits in groups of {self.group}, {how}"

    @property
    def word(self) -> int:
        """Levels of a word."""
        return WORD // self.bits

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the product of floats that it is."""
        attrs, (x, _) = ops.dequantize_groups.attrs, ops.dense.inputs[0]
        yield from unlike("bits", self.bits, attrs["bits"])
        yield from unlike("a group", self.group, attrs["group"])
        depth, out = whole_groups(x[-1], self.group), ops.dense.outputs[0]
        if not self.by_panels:
            yield from unlike("pieces", self.product.pieces, depth // self.group)
        inputs = [((*x[:-1], depth), "float32"), ((out[0][-1], depth), "float32")]
        alone = describe(ops.dense.name, "dense", ops.dense.attrs, inputs, [tuple(out)])
        yield from self.product.faults(Ops([alone]), cpu)


def plan(ops: Ops, machine: Machine) -> FewBitsPlan:
    """That of floats; of few rows in pieces of a group."""
    (shape, _), attrs = ops.dense.outputs[0], ops.dequantize_groups.attrs
    depth = whole_groups(ops.dense.inputs[0][0][-1], attrs["group"])
    rows = plan_rows(lead_of(shape), depth, shape[-1], "float32", machine)
    passes = passes_of_one(rows, depth, machine)
    found = product_plan(rows, depth, shape[-1], "float32", machine, "outputs", passes=passes)
    by_panels = found.group > 1
    if not by_panels:
        found = replace(found, pieces=depth // attrs["group"])
    return FewBitsPlan(found, attrs["bits"], attrs["group"], by_panels)


@dataclass(frozen=True)
class Grouped:
    """`parts` [outer, tile, piece, block, row, lane] are the sums of a piece, `sums` of all."""

    parts: Tensor
    sums: Tensor
    panel: Tensor | None = None  # [block, k, lane] of floats
    inputs: Tensor | None = None  # [outer, tile, piece, row]: sums of a row's elements


@dataclass(frozen=True)
class FewBits:
    """The dense layer, as `Dense` is one."""

    product: Grouped
    outputs: Tensor
    result: Tensor


def compute(
    x: Tensor,
    levels: Tensor,
    scale: Tensor,
    zero: Tensor,
    bias: Tensor | None = None,
    *,
    ops: Ops,
    plan: FewBitsPlan,
) -> FewBits:
    """Sums of groups or of pieces, then the bias."""
    out, rows = ops.dense.outputs[0], plan.product.rows
    read = in_tiles(_whole_groups(x, plan.product.depth), rows)

    def level(b: PrimExpr, k: PrimExpr, lane: PrimExpr) -> PrimExpr:
        word = levels(b, tir.floordiv(k, plan.word), lane)
        return fraction(word, tir.floormod(k, plan.word), plan.bits)

    made = _by_panels if plan.by_panels else _by_groups
    found = made(read, level, scale, zero, plan)
    outputs = epilogue(found.sums, bias, out)
    return FewBits(found, outputs, result(rows, outputs, out[0][-1]))


def _whole_groups(x: Tensor, padded: int) -> Tensor:
    """With zeros after the last element of a row."""
    *lead, depth = extents(x)
    if padded == depth:
        return x

    def element(*i: PrimExpr) -> PrimExpr:
        # No Select: TVM drops a minimum in its index that the condition implies, and reads on.
        return tir.if_then_else(i[-1] < depth, x(*i), tir.const(0, x.dtype))

    return te.compute((*lead, padded), element, name=f"{x.op.name}_whole")


def _by_panels(
    read: Callable[..., PrimExpr], level: Callable[..., PrimExpr], scale: Tensor, zero: Tensor,
    plan: FewBitsPlan,
) -> Grouped:  # fmt: skip
    def element(b: PrimExpr, k: PrimExpr, lane: PrimExpr) -> PrimExpr:
        at = b, tir.floordiv(k, plan.group), lane
        return (level(b, k, lane) - zero(*at)) * scale(*at)

    shape = (plan.product.blocks, plan.product.depth, BLOCK)
    panel = te.compute(shape, element, name="panel")
    parts = _parts(read, panel, plan)
    return Grouped(parts, _summed(parts, plan, lambda part, *_: part), panel)


def _by_groups(
    read: Callable[..., PrimExpr], level: Callable[..., PrimExpr], scale: Tensor, zero: Tensor,
    plan: FewBitsPlan,
) -> Grouped:  # fmt: skip
    rows, size = plan.product.rows, plan.group
    (k,) = reduce_axes(k=size)

    def element(*i: PrimExpr) -> PrimExpr:
        *at, piece, row = i
        return te.sum(read(*at, row, piece * size + k), axis=k)

    shape = (*rows.tiles, plan.product.pieces, rows.height)
    inputs = te.compute(shape, element, name="inputs_of_groups")

    def scaled(
        part: PrimExpr,
        at: Sequence[PrimExpr],
        piece: PrimExpr,
        b: PrimExpr,
        row: PrimExpr,
        lane: PrimExpr,
    ) -> PrimExpr:
        return scale(b, piece, lane) * (part - zero(b, piece, lane) * inputs(*at, piece, row))

    parts = _parts(read, level, plan)
    return Grouped(parts, _summed(parts, plan, scaled), inputs=inputs)


def _parts(
    read: Callable[..., PrimExpr], weight: Callable[..., PrimExpr], plan: FewBitsPlan
) -> Tensor:
    product = plan.product
    (k,) = reduce_axes(k=product.size)

    def element(*i: PrimExpr) -> PrimExpr:
        *at, piece, block, row, lane = i
        place = piece * product.size + k
        return te.sum(read(*at, row, place) * weight(block, place, lane), axis=k)

    tile = (product.pieces, product.blocks, product.rows.height, BLOCK)
    return te.compute((*product.rows.tiles, *tile), element, name="products_parts")


def _summed(parts: Tensor, plan: FewBitsPlan, made: Callable[..., PrimExpr]) -> Tensor:
    """Over the pieces, of what is made of each."""
    product = plan.product
    shape = (*product.rows.tiles, product.blocks, product.rows.height, BLOCK)

    def of(i: Sequence[PrimExpr], piece: PrimExpr) -> PrimExpr:
        *at, block, row, lane = i
        return made(parts(*at, piece, block, row, lane), at, piece, block, row, lane)

    if product.pieces == 1:
        return te.compute(shape, lambda *i: of(i, 0), name="products")
    (piece,) = reduce_axes(piece=product.pieces)
    return te.compute(shape, lambda *i: te.sum(of(i, piece), axis=piece), name="products")


def schedule(sch: Schedule, stages: FewBits, plan: FewBitsPlan) -> None:
    """As a product of floats in pieces."""
    product = plan.product
    prepare(sch, stages, product.lanes)
    loops = tile_rows(sch, stages.outputs, product)
    finish = _sums(sch, stages.product, loops, plan)
    store(sch, stages.result, stages.outputs, loops, product)
    in_parallel(sch, loops.tasks, product)
    for last in finish:
        last()


def _sums(sch: Schedule, stages: Grouped, loops: Loops, plan: FewBitsPlan) -> list[Finish]:
    parts, product = Facts(sch, stages.parts), plan.product
    tile, piece, finish = pieces_around(sch, Facts(sch, stages.sums), loops, product)
    split = 0 if plan.by_panels else plan.word
    _, start = in_registers(sch, parts, tile, product, split)
    if stages.panel is not None:
        _panel(sch, stages.panel, loops.panel if piece is None else piece, plan)
    else:
        behind = 3 + (product.lanes < BLOCK)  # rows, blocks, vectors and their lanes
        sch.unroll(sch.get_loops(parts.block)[-behind - 1])
    return [start, *finish]


def _panel(sch: Schedule, panel: Tensor, at: Loop, plan: FewBitsPlan) -> None:
    """A piece of a panel as floats, a word at a time."""
    sch.compute_at(panel, at, preserve_unit_loops=True)
    *_, k, lane = sch.get_loops(panel)
    if plan.product.size % plan.word == 0:
        _, inner = sch.split(k, [None, plan.word])
        sch.unroll(inner)
    vectorize(sch, lane, plan.product.lanes)


FEW_BITS_DENSE = Kernel(
    plan, compute, schedule,
    pack={"levels": pack_levels, "scale": pack_scale, "zero": pack_zero},
)  # fmt: skip
