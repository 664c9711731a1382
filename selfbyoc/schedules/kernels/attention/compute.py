"""Attention as te.compute: the stages that the schedule melts.

m is a query, n a key, d the shared axis, e a column of the values. Queries come in blocks of
`lanes`, and a query is a lane: scores lie as [key, lane], so that the largest score and the sum
of a query are taken down the lanes and no vector is ever reduced or transposed. The second product
broadcasts a score and reads a vector of a value's columns. What lies after the last query or key
is a copy of it, read again: no lane needs a condition.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ....codegen.info.ops import Ops
from ....ops.softmax import Softmax
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ..bfloat16 import times, word_along
from .few import FewStages, attention_of_few
from .forms import BlockPlan, FewPlan
from .masks import Masks, MaskStages, mask_stages, masked_in_blocks
from .operands import Read, capped_scores, laid_out, rows_of, scaled_queries
from .plan import AttentionPlan
from .softmax import softmax_of, words_of_powers
from .split import SplitStages, attention_of_blocks
from .split_plan import SplitPlan

Times = Callable[[PrimExpr, PrimExpr], PrimExpr]
Made = Callable[..., PrimExpr]


@dataclass(frozen=True)
class BlockStages:
    """The stages of blocks of queries, in order."""

    keys: Tensor | None  # [key, d] of each head, where they do not lie so and are read often
    queries: Tensor  # [block, d, lane]
    products: Tensor  # [block, key, lane], as all up to the powers
    scores: Tensor
    peak: Tensor  # [block, lane]
    power: Tensor
    total: Tensor
    inverse: Tensor
    values: Tensor | None  # [key, whole vectors], likewise
    weighted: Tensor  # [tile, query, column]
    normalised: Tensor
    result: Tensor
    partial: Tensor | None = None  # [block, part, lane]: sums of powers, where these are in parts
    words: Tensor | None = None  # [block, word of keys, lane]: of powers, rounded or as levels
    masks: MaskStages | None = None


AttentionStages = BlockStages | FewStages | SplitStages


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: Tensor | None = None,
    mask: Tensor | None = None,
    key_scale: Tensor | None = None,
    second_mask: Tensor | None = None,
    slope: Tensor | None = None,
    cap: Tensor | None = None,
    *,
    ops: Ops,
    plan: AttentionPlan,
) -> AttentionStages:
    """The whole composite; `ops` says what was matched."""
    first, second = ops.of("batch_matmul")
    interleaved = plan.shape.interleaved
    turned = first.attrs["transpose_a"]
    read_queries = rows_of(q, "q" in interleaved, turned)
    scales = {"key_scale": key_scale, "scale": scale, "slope": slope}
    queries = scaled_queries(read_queries, scales, ops, turned)
    keys = rows_of(k, "k" in interleaved, not first.attrs["transpose_b"])
    transposed = second.attrs["transpose_b"] and "v" not in interleaved
    values = rows_of(v, "v" in interleaved, transposed)
    parts = Softmax(ops.softmax.attrs.get("guarded", False))
    masks = Masks.of({"mask": mask, "second_mask": second_mask}, ops)
    masked = capped_scores(cap, masks.added)
    if isinstance(plan, FewPlan):
        return attention_of_few(queries, keys, values, masked, parts, plan)
    if isinstance(plan, SplitPlan):
        return attention_of_blocks(queries, keys, values, masked, parts, plan)
    return _of_blocks(queries, keys, values, transposed, masks, cap, parts, plan)


def _of_blocks(
    queries: Read, keys: Read, values: Read, transposed: bool, masks: Masks, cap: Tensor | None,
    parts: Softmax, plan: BlockPlan,
) -> BlockStages:  # fmt: skip
    packed_keys = _keys(keys, plan)
    packed_values = _values(values, transposed, plan)
    laid = queries_of(_along_depth(queries, plan), plan)
    product = times(bool(plan.words))
    products = products_of(laid, keys if packed_keys is None else packed_keys, plan, product)
    of_masks = mask_stages(masks, plan)
    scores = scores_of(products, capped_scores(cap, masked_in_blocks(masks, of_masks, plan)))
    soft = softmax_of(scores, parts, plan, of_masks)
    words = words_of_powers(soft.power, plan) if plan.words else None
    factor = soft.power if words is None else words
    weighted, normalised = weighted_of(
        factor, values if packed_values is None else packed_values,
        lambda value, *i: parts.multiplied(value, soft.inverse(*i)), plan, product,
    )  # fmt: skip
    return BlockStages(
        packed_keys, laid, products, scores, soft.peak, soft.power, soft.total, soft.inverse,
        packed_values, weighted, normalised, result_of(normalised, plan), soft.partial, words,
        of_masks,
    )  # fmt: skip


def _keys(keys: Read, plan: BlockPlan) -> Tensor | None:
    """[key, d]; None if they are read as they lie."""
    if not plan.packed:
        return None
    extents = (*plan.shape.batch, plan.shape.keys, plan.depth)
    return te.compute(extents, _along_depth(keys, plan), name="keys")


def _along_depth(read: Read, plan: BlockPlan) -> Read:
    """Words of neighbours of the last axis, where products are of these."""
    if not plan.words:
        return read
    return lambda *i: word_along(partial(read, *i[:-1]), i[-1], plan.shape.depth)


def queries_of(scaled: Read, plan: BlockPlan) -> Tensor:
    """[block, d, lane]"""
    shape, ndim = plan.shape, len(plan.shape.batch)

    def element(*i: PrimExpr) -> PrimExpr:
        m = tir.Min(i[ndim] * plan.lanes + i[-1], shape.queries - 1)
        return scaled(*i[:ndim], m, i[-2])

    return te.compute((*shape.batch, plan.blocks, plan.depth, plan.lanes), element, name="queries")


def products_of(
    queries: Tensor, keys: Read, plan: BlockPlan, times: Times = operator.mul
) -> Tensor:
    """Of all keys and the queries of a block."""
    shape, ndim = plan.shape, len(plan.shape.batch)
    d = te.reduce_axis((0, plan.depth), name="d")

    def element(*i: PrimExpr) -> PrimExpr:
        key = keys(*i[:ndim], tir.Min(i[-2], shape.keys - 1), d)
        return te.sum(times(key, queries(*i[:-2], d, i[-1])), axis=d)

    extents = (*shape.batch, plan.blocks, plan.key_rows, plan.lanes)
    return te.compute(extents, element, name="products")


def scores_of(products: Tensor, masked: Read) -> Tensor:
    """The products as the ops after them make them; `masked` is one at (batch ..., block, key,
    lane).
    """
    return te.compute(products.shape, lambda *i: masked(products(*i), *i), name="scores")


def _values(values: Read, transposed: bool, plan: BlockPlan) -> Tensor | None:
    """[n, e] with e contiguous and in whole vectors, of words [n / 2, e]; None if they are read as
    they lie.
    """
    columns = plan.shape.columns
    apart = plan.words or (plan.packed and "v" in plan.shape.interleaved)
    if not (transposed or apart) and plan.width == columns:
        return None

    def element(*i: PrimExpr) -> PrimExpr:
        if plan.width == columns:
            return values(*i)
        return tir.if_then_else(i[-1] < columns, values(*i), tir.const(0, "float32"))

    def word(*i: PrimExpr) -> PrimExpr:
        return word_along(lambda n: element(*i[:-2], n, i[-1]), i[-2], plan.shape.keys)

    extents = (*plan.shape.batch, plan.keys, plan.width)
    return te.compute(extents, word if plan.words else element, name="values")


def weighted_of(
    powers: Tensor, values: Read, made: Made, plan: BlockPlan, times: Times = operator.mul
) -> tuple[Tensor, Tensor]:
    """The second product in tiles of queries, and what is `made` of its sums: (sum, batch ...,
    block, lane) -> element.
    """
    shape, ndim = plan.shape, len(plan.shape.batch)
    rows = plan.weighted.rows
    tiles = plan.lanes // rows
    n = te.reduce_axis((0, plan.keys), name="n")

    def lane(*i: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        return tir.floordiv(i[ndim], tiles), tir.floormod(i[ndim], tiles) * rows + i[ndim + 1]

    def product(*i: PrimExpr) -> PrimExpr:
        block, at = lane(*i)
        return te.sum(times(powers(*i[:ndim], block, n, at), values(*i[:ndim], n, i[-1])), axis=n)

    def normal(*i: PrimExpr) -> PrimExpr:
        return made(weighted(*i), *i[:ndim], *lane(*i))

    extents = (*shape.batch, plan.blocks * tiles, rows, plan.width)
    weighted = te.compute(extents, product, name="weighted")
    return weighted, te.compute(extents, normal, name="normalised")


def result_of(normalised: Tensor, plan: BlockPlan) -> Tensor:
    """The real queries and columns, as the composite's result lies."""
    ndim, rows = len(plan.shape.batch), plan.weighted.rows

    def element(*i: PrimExpr) -> PrimExpr:
        tile, row = tir.floordiv(i[ndim], rows), tir.floormod(i[ndim], rows)
        return normalised(*i[:ndim], tile, row, i[-1])

    return laid_out(element, plan.shape)
