"""Words of two bfloat16: of a weight, and of what a model multiplies it by, which is rounded to
that dtype as the model has it. Sums are float32, and a product is one of floats over half of the
depth (machine/products.py says where that pays).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....codegen.info.ops import Ops, Packing
from ....machine import Machine
from ....ops.half_weights import WIDENS
from ....tvm import te, tir
from ....tvm.own_ops import BFLOATS, LEVELS_OF, word_of_bfloat16
from ....tvm.types import Block, PrimExpr, Schedule, Tensor
from ...steps.tensors import extents
from ..bfloat16 import WORD, word_along
from ..words import machine_of_words, words_of
from .rowwise import Read


def products_of(ops: Ops, arg: str, cpu: Machine) -> str:
    """The kind of products by which an argument is multiplied that is a weight of bfloat16 in the
    model; none: as floats. What was packed, perhaps for another CPU, is multiplied as it lies; one
    input is as long as a word of it.
    """
    for call in ops.of("half_weight"):
        packing, ((_, depth), dtype) = ops.packing(call, 0), call.inputs[0]
        if packing.arg == arg and dtype == "bfloat16" and depth > 1:
            return _as_packed(packing, depth, cpu)
    return ""


def become_floats(ops: Ops, arg: str, products: str) -> bool:
    """Whether an argument is a weight of halves that is multiplied as floats."""
    wide = [call for kind in WIDENS for call in ops.of(kind)]
    return not products and any(ops.packing(call, 0).arg == arg for call in wide)


def _as_packed(packing: Packing, depth: int, cpu: Machine) -> str:
    if packing.shape is None:
        return cpu.products_of_bfloat16
    return BFLOATS if packing.shape[1] == words_of(depth, WORD) else ""


def machine_of(cpu: Machine, products: str) -> Machine:
    """A machine as its products of a kind are; of floats itself."""
    return machine_of_words(cpu, products) if products else cpu


def steps_of(depth: int, products: str) -> int:
    """Steps of a sum: words of a kind; of floats each is one."""
    return words_of(depth, LEVELS_OF[products]) if products else depth


def rounded_words(read: Read, shape: Sequence[PrimExpr], name: str) -> Tensor:
    """Rows of floats as words, zero after the last element: a stage of its own."""
    *lead, depth = shape

    def word(*i: PrimExpr) -> PrimExpr:
        return word_along(partial(read, *i[:-1]), i[-1], int(depth))

    return te.compute((*lead, words_of(int(depth), WORD)), word, name=f"{name}_words")


def blocks_of_words(tiles: Tensor, depth: int) -> Tensor:
    """Tiles [..., block, row, lane] of floats, of which `depth` are real, as words."""
    *lead, block, row, lanes = extents(tiles)

    def element(at: PrimExpr, *i: PrimExpr) -> PrimExpr:
        value = tiles(*i, at)
        if depth % WORD == 0:
            return value
        return tir.Select(i[-2] * lanes + at < depth, value, tir.const(0, "float32"))

    def word(*i: PrimExpr) -> PrimExpr:
        *place, at = i
        return word_of_bfloat16(*(element(at * WORD + n, *place) for n in range(WORD)))

    shape = (*lead, block, row, words_of(lanes, WORD))
    return te.compute(shape, word, name=f"{tiles.op.name}_words")


def schedule_words(sch: Schedule, words: Block, *, parallel: bool) -> None:
    """Tiles of words as a stage: a block of a tile after the other, in vectors."""
    *_, tile, block, _, lane = sch.get_loops(words)
    sch.vectorize(lane)
    task = sch.fuse(tile, block)
    if parallel:
        sch.parallel(task)
