"""Products over tiles of rows (row_tiles.py) in registers: pieces of k around the tiles of a panel,
and the next piece of the weight asked for meanwhile.
"""

from __future__ import annotations

from typing import Any

from ....machine import Machine
from ...steps.blocks import Facts, divisor
from ...steps.loops import CHUNK, Finish, ask_ahead, vectorize
from .loops import Loops

# The stages of a product that comes in pieces of k.
PRODUCTS = ("products", "products_last", "products_before", "products_parts")


def product_at(
    sch: Any, stages: dict[str, Facts], name: str, loops: Loops, cpu: Machine, split: int = 0
) -> list[Finish]:
    """A product under the tiles that read it. Pieces of k go around the tiles of a panel, so that
    a piece of the weight is read from L1 by all but the first; the last stays in registers.

    `split` cuts k further, for an operand that lies in blocks of them.
    """
    if f"{name}_parts" not in stages:
        return [_in_registers(sch, stages[name], loops.tile, cpu, split)[1]]
    last, before, parts = (stages[f"{name}_{which}"] for which in ("last", "before", "parts"))
    # Few lines at a time: dense_gelu_dense 128x384x1536 with its weights in memory takes 720 us
    # without asking, 697 if a tile asks for all its lines at once, and 637 so, as with them in L3.
    asks = loops.own_columns  # cores that read the same weight find it in the last cache
    split = split or (CHUNK if asks else 0)
    sch.compute_inline(stages[name].block)
    at_last, start_last = _in_registers(sch, last, loops.tile, cpu, split)
    part, piece, finish = _pieces(sch, before, loops, cpu)
    k, start = _in_registers(sch, parts, part, cpu, split)
    if asks:
        finish.append(lambda: _ask(sch, parts, piece, (k, at_last), loops))
    return [start_last, start, *finish]


def _ask(sch: Any, parts: Facts, piece: Any, ks: tuple[Any, Any], loops: Loops) -> None:
    """Behind a piece of a panel of the weight lies the next one, behind the last the next panel."""
    (weight,) = parts.buffers_along(parts.spatial[-1])
    panel = sch.get_loops(parts.block)[0]
    size, pieces = parts.reduction[0].extent, parts.spatial[-4].extent
    ask_ahead(sch, panel if piece is None else piece, ks[0], weight, (0, size, 0))
    ask_ahead(sch, panel, ks[1], weight, (loops.wide, -pieces * size, 0))


def _pieces(sch: Any, before: Facts, loops: Loops, cpu: Machine) -> tuple[Any, Any, list[Finish]]:
    """Pieces of k but the last, around the tiles of a panel; -> the loops over parts of tiles and
    over pieces, and what is to be done last.
    """
    sch.compute_at(before.block, loops.panel, preserve_unit_loops=True)
    around = list(sch.get_loops(before.block))
    pieces = [around.pop()] if before.reduction else []
    *_, tile, blocks, row, lane = around
    part, row = sch.split(row, [None, loops.rows])
    sch.reorder(*pieces, tile, part, row, blocks, lane)
    for loop in (row, blocks):
        sch.unroll(loop)
    count = len(sch.get_loops(before.block))
    vectorize(sch, lane, cpu.lanes(before.dtype))
    inside = 3 + len(sch.get_loops(before.block)) - count
    if not pieces:
        return part, None, []
    return part, pieces[0], [lambda: start_in_vectors(sch, before, pieces[0], inside)]


def _in_registers(
    sch: Any, product: Facts, at: Any, cpu: Machine, split: int
) -> tuple[Any, Finish]:
    """Accumulators in registers under a tile: k outside, rows unrolled, lanes vectors; -> the outer
    loop over k.
    """
    sch.compute_at(product.block, at, preserve_unit_loops=True)
    sch.set_scope(product.block, 0, "local")
    *_, blocks, row, lane, k = sch.get_loops(product.block)
    ks = sch.split(k, [None, divisor(extent_of(sch, k), split)]) if split else [k]
    sch.reorder(*ks, row, blocks, lane)
    for loop in (row, blocks):
        sch.unroll(loop)
    before = len(sch.get_loops(product.block))
    vectorize(sch, lane, cpu.lanes(product.dtype))
    inside = 3 + len(sch.get_loops(product.block)) - before
    return ks[0], lambda: start_in_vectors(sch, product, ks[0], inside)


def extent_of(sch: Any, loop: Any) -> int:
    """Iterations of a loop."""
    return int(sch.get(loop).extent)


def start_in_vectors(sch: Any, product: Facts, k: Any, inside: int) -> None:
    """The accumulators' start in front of the loop over k, in the same vectors."""
    *unrolled, lane = list(sch.get_loops(sch.decompose_reduction(product.block, k)))[-inside:]
    for loop in unrolled:
        sch.unroll(loop)
    sch.vectorize(lane)
