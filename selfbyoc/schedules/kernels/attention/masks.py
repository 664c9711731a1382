"""What masks add to scores, and how many keys a block of queries sees.

The scores of a block lie as [key, query], a mask as [query, key]: read as it lies, each element
comes from a line of its own (2 heads of 3584 x 2048: 40 ms, without a mask 19). So a block of it is
transposed in registers first, and its last visible key is found on the way: no loop goes past it.
That halves causal attention, and keys of padding cost nothing.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass

from ....codegen.info.ops import Ops
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ..words import words_of
from .forms import BlockPlan
from .operands import Read, read

# What is added to a score hides its key from here down: beside others a softmax makes zero of it.
HIDDEN = -1e30


@dataclass(frozen=True)
class Masks:
    """What is added to scores: of each query, and the same for all queries."""

    of_queries: tuple[Read, ...] = ()
    of_keys: tuple[Read, ...] = ()
    hides: bool = False  # whether they may hide keys: those of each head are biases

    @classmethod
    def of(cls, given: Mapping[str, Tensor | None], ops: Ops) -> Masks:
        """Of a composite's arguments; one along a single axis was read as a bias. (Along queries it
        hides all keys of one or none, so that it may pass for one of keys.)
        """
        tensors = [mask for mask in given.values() if mask is not None]
        if tensors and ops.of("bias_add"):
            axis, (bias,) = ops.bias_add.attrs["axis"], tensors
            return cls(of_keys=(lambda *i: bias(i[axis]),), hides=True)
        times = {ops.packing(c, 0).arg: c.attrs["repeats"][-2] for c in ops.of("tile")}
        found = [(m, _read(m, times.get(name, 1))) for name, m in given.items() if m is not None]
        of_keys = tuple(read for mask, read in found if _is_one(mask, -2))
        whole = [(mask, read) for mask, read in found if not _is_one(mask, -2)]
        hides = bool(found) and all(_is_one(mask, -3) for mask, _ in whole)
        return cls(tuple(read for _, read in whole), of_keys, hides)

    def added(self, score: PrimExpr, *i: PrimExpr) -> PrimExpr:
        """A score at (batch ..., query, key) with them all."""
        return functools.reduce(
            operator.add, (m(*i) for m in self.of_queries + self.of_keys), score
        )


def _read(mask: Tensor, times: int) -> Read:
    """Of a mask of each query, or of each query of so many heads that share keys."""
    rows = mask.shape[-2]
    if times == 1 or _is_one(mask, -2):
        return functools.partial(read, mask)

    def element(*i: PrimExpr) -> PrimExpr:
        # No remainder: TVM takes one apart, differently for each known number, and a kernel of all
        # sizes is learnt from those of some.
        before = sum((i[-2] >= rows * n).astype("int32") for n in range(1, times))
        return read(mask, *i[:-2], i[-2] - rows * before, i[-1])

    return element


def _is_one(tensor: Tensor, axis: int) -> bool:
    return len(tensor.shape) < -axis or getattr(tensor.shape[axis], "value", None) == 1


@dataclass(frozen=True)
class MaskStages:
    """Those of a block of queries, in order."""

    turned: Tensor | None  # [block, key, lane]: what is added for each query, in whole tiles
    last: Tensor  # [block, lane]: 1 + the last key that a query sees; 0 if it sees none
    furthest: Tensor  # [block], of all queries
    seen: Tensor  # [block]: how many keys loops go over, whole steps of each of them


def mask_stages(masks: Masks, plan: BlockPlan) -> MaskStages | None:
    """None without a mask that may hide keys: of each head it is a bias, which is read as it lies
    (12 heads of 384 x 384: 3.5 ms so, 4.0 turned; 49 x 49 0.48 and 0.61).
    """
    if not masks.hides:
        return None
    turned = _turned(masks, plan) if masks.of_queries else None
    last = _last(turned, masks, plan)
    furthest, seen = _seen(last, plan)
    return MaskStages(turned, last, furthest, seen)


def masked_in_blocks(masks: Masks, stages: MaskStages | None, plan: BlockPlan) -> Read:
    """A score at (batch ..., block, key, lane) with what is added to it."""
    turned = None if stages is None else stages.turned
    if turned is None:
        return in_blocks(masks.added, plan)
    others = in_blocks(Masks(of_keys=masks.of_keys).added, plan)
    return lambda score, *i: others(score + turned(*i), *i)


def in_blocks(masked: Read, plan: BlockPlan) -> Read:
    """What is made of a score at (batch ..., query, key), at (batch ..., block, key, lane)."""
    shape, ndim = plan.shape, len(plan.shape.batch)

    def element(score: PrimExpr, *i: PrimExpr) -> PrimExpr:
        return masked(
            score, *i[:ndim], query_of(plan, i[ndim], i[-1]), tir.Min(i[-2], shape.keys - 1)
        )

    return element


def query_of(plan: BlockPlan, block: PrimExpr, lane: PrimExpr) -> PrimExpr:
    """A block's query; after the last one comes that one again."""
    return tir.Min(block * plan.lanes + lane, plan.shape.queries - 1)


def _turned(masks: Masks, plan: BlockPlan) -> Tensor:
    """Whole tiles of keys; those after the last one are copies of it."""
    shape, ndim = plan.shape, len(plan.shape.batch)

    def element(*i: PrimExpr) -> PrimExpr:
        at = (*i[:ndim], query_of(plan, i[ndim], i[-1]), tir.Min(i[-2], shape.keys - 1))
        return functools.reduce(operator.add, (mask(*at) for mask in masks.of_queries))

    # As many as the tiles of scores read; their number, rounded up, is no formula of open sizes.
    keys = words_of(shape.keys + plan.scores.rows - 1, plan.vector) * plan.vector
    return te.compute((*shape.batch, plan.blocks, keys, plan.lanes), element, name="turned")


def _last(turned: Tensor | None, masks: Masks, plan: BlockPlan) -> Tensor:
    """Of all queries, or of one where the same is added for all."""
    shape, ndim = plan.shape, len(plan.shape.batch)
    rest = Masks(of_keys=masks.of_keys)
    key = te.reduce_axis((0, shape.keys if turned is None else turned.shape[-2]), name="key")
    near = tir.Min(key, shape.keys - 1)

    def element(*i: PrimExpr) -> PrimExpr:
        own = tir.const(0, "float32") if turned is None else turned(*i[:-1], key, i[-1])
        added = rest.added(own, *i[:ndim], query_of(plan, i[ndim], i[-1]), near)
        number = (near + 1).astype("int32")
        return te.max(tir.Select(added <= HIDDEN, tir.const(0), number), axis=key)

    lanes = 1 if turned is None else plan.lanes
    return te.compute((*shape.batch, plan.blocks, lanes), element, name="last")


def _seen(last: Tensor, plan: BlockPlan) -> tuple[Tensor, Tensor]:
    """How far the block's queries see, and the same in whole steps of all loops. A query that sees
    nothing is made of all keys alike, or is NaN: as without this.
    """
    lane = te.reduce_axis((0, int(last.shape[-1])), name="lane")
    keys = tir.const(plan.shape.keys, "int32")

    def element(*i: PrimExpr) -> PrimExpr:
        found = last(*i, lane)
        return te.max(tir.Select(found == 0, keys, found), axis=lane)

    whole = te.compute(last.shape[:-1], element, name="furthest")
    step = math.lcm(plan.scores.rows, plan.key_steps * plan.word)
    return whole, te.compute(
        whole.shape, lambda *i: tir.floordiv(whole(*i) + step - 1, step) * step, name="seen"
    )
