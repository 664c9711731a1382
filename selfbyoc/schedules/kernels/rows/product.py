"""The schedule of products over tiles of rows: sums in registers, pieces of k around the tiles of a
panel, and the next piece of the weight prefetched meanwhile.
"""

from __future__ import annotations

from ....tvm.types import Loop, Schedule
from ...steps.blocks import Facts, divisor
from ...steps.loops import Finish, prefetch_next
from ...steps.registers import sum_in_tile, weight_of
from .compute import Product
from .forms import ProductPlan
from .tiles import Loops


def product_at(
    sch: Schedule, product: Product, loops: Loops, plan: ProductPlan, split: int = 0
) -> list[Finish]:
    """A product under the tiles that read it. Pieces of k go around the tiles of a panel, so that
    a piece of the weight is read from L1 by all but the first; the last stays in registers.

    `split` cuts k further, for an operand that lies in blocks of them.
    """
    if plan.partial > 1:
        return _partial_sums(sch, product, loops, plan)
    last = Facts(sch, product.last)
    # Few lines at a time: dense_gelu_dense 128x384x1536 with its weights in memory takes 720 us
    # without prefetching, 697 if a tile prefetches all its lines at once, and 637 so, as with them
    # in L3.
    split = split or plan.chunk
    if product.before is not None:
        sch.compute_inline(product.total)
    at_last, start_last = in_registers(sch, last, loops.tile, plan, split)
    if product.before is None:
        ahead = [lambda: _prefetch_panel(sch, last, at_last, plan)] if plan.chunk else []
        return [start_last, *ahead]
    parts, before = Facts(sch, product.parts), Facts(sch, product.before)
    tile, piece, finish = pieces_around(sch, before, loops, plan)
    k, start = in_registers(sch, parts, tile, plan, split)
    if plan.chunk:
        finish.append(lambda: _prefetch(sch, parts, piece, (k, at_last), plan))
    return [start_last, start, *finish]


def _partial_sums(sch: Schedule, product: Product, loops: Loops, plan: ProductPlan) -> list[Finish]:
    """Sums in registers side by side, then added there."""
    last, parts = Facts(sch, product.last), Facts(sch, product.parts)
    _, added = in_registers(sch, last, loops.tile, plan, 0)
    return [added, in_registers(sch, parts, loops.tile, plan, 0, partial=True)[1]]


def _prefetch_panel(sch: Schedule, sums: Facts, k: Loop, plan: ProductPlan) -> None:
    """The tiles of a panel of the weight prefetch the next one."""
    prefetch_next(sch, sch.get_loops(sums.block)[0], k, weight_of(sums), (plan.wide, 0, 0))


def _prefetch(
    sch: Schedule, parts: Facts, piece: Loop | None, ks: tuple[Loop, Loop], plan: ProductPlan
) -> None:
    """After a piece of a panel of the weight lies the next one, after the last the next panel."""
    weight = weight_of(parts)
    panel = sch.get_loops(parts.block)[0]
    back = (plan.pieces - 1) * plan.size
    prefetch_next(sch, panel if piece is None else piece, ks[0], weight, (0, plan.size, 0))
    prefetch_next(sch, panel, ks[1], weight, (plan.wide, -back, 0))


def pieces_around(
    sch: Schedule, before: Facts, loops: Loops, plan: ProductPlan
) -> tuple[Loop, Loop | None, list[Finish]]:
    """Pieces of k but the last, around the tiles of a panel; -> the loops over tiles and over
    pieces, and what is to be done last.
    """
    sch.compute_at(before.block, loops.panel, preserve_unit_loops=True)
    around = list(sch.get_loops(before.block))
    pieces = [around.pop()] if before.reduction else []
    *_, tile, blocks, row, lane = around
    start = sum_in_tile(sch, before.block, [*pieces, tile], [row, blocks, lane], plan.lanes)
    return (tile, pieces[0], [start]) if pieces else (tile, None, [])


def in_registers(
    sch: Schedule, product: Facts, at: Loop, plan: ProductPlan, split: int, *, partial: bool = False
) -> tuple[Loop, Finish]:
    """Accumulators in registers under a tile: k outside, rows unrolled, lanes vectors; -> the outer
    loop over k. `partial`: sums in front of the blocks, side by side.
    """
    sch.compute_at(product.block, at, preserve_unit_loops=True)
    sch.set_scope(product.block, 0, "local")
    *sums, blocks, row, lane, k = list(sch.get_loops(product.block))[-5 if partial else -4 :]
    ks = sch.split(k, [None, divisor(extent_of(sch, k), split)]) if split else [k]
    return ks[0], sum_in_tile(sch, product.block, ks, [*sums, row, blocks, lane], plan.lanes)


def extent_of(sch: Schedule, loop: Loop) -> int:
    """Iterations of a loop."""
    return int(sch.get(loop).extent)
