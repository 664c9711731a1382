"""The plan of a product of rows with a packed weight: register tile, pieces of k, panels, tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....language.decisions import choose, for_every_size
from ....machine import LINE, Machine
from ....tvm.types import Shape
from ...steps.blocks import divisor
from ...steps.candidates import best, divisors, next_to
from ...steps.parallel import LEAST_STEPS, is_worth_it
from ...steps.tiles import BLOCK, RegisterTile
from .forms import ProductPlan, block_vectors, paired_blocks
from .layout import Rows, numbered, rows_in_tiles
from .register_tiles import (
    MOST_ROWS,
    MOST_WIDE_BLOCKS,
    cycles,
    most_wide_blocks,
    partial_sums,
    tiles_of,
)

MOST_PIECE = 256  # of k: sums of fewer terms are more accurate, too (4e-7, not 3e-6)
LEAST_PIECE = 64  # below, adding the pieces up costs more than 1 in 50
# A task of rows reads the whole weight: it has to stay in L2, and few rows are not worth it.
# layer_norm and dense of 128 rows, 384 to 1536, with weights in memory: 417 us by rows, 325 by
# columns, each of which one core reads, ahead of time; with weights in L3 307 and 310 (Zen 5).
LEAST_ROWS = 16
MOST_PARTS = 8  # of a symbolic number of rows: each number of them is another kernel
MOST_UNEVEN_ROWS = 8 / 7  # time of the busiest core of such tasks, where all might be equally busy
LEAST_PASS = 64  # rows of a pass over a weight: fewer wait for it
MOST_TASK_ROWS = 72  # of a task that has stages of its own in front: they stay in L2


def plan_rows(
    lead: Shape,
    depth: int,
    units: int,
    dtype: str,
    cpu: Machine,
    deepest: int = 0,
    halves: bool = False,
) -> Rows:
    """The rows of a product in tiles as high as its register tile; `deepest` is the k of a later
    one that has more, `halves`: its weight is of halves, which become floats.
    """
    blocks = paired_blocks(units)
    count = math.prod(lead)

    def cost(height: int) -> tuple[float, float, int]:
        rows = _in_tiles(lead, height, depth, cpu)
        waste = rows.padded / count
        widest = most_wide_blocks(rows, halves, cpu)
        fitting = tiles_of(height, blocks, dtype, cpu, widest)
        fastest = min(cycles(t, cpu) / t.sums for t in fitting)
        return round(waste * fastest, 4), waste, -height

    most = MOST_ROWS if for_every_size() else min(MOST_ROWS, count)
    heights = [h for h in range(1, most + 1) if _fits_rows(h, dtype, cpu)]
    sorted_heights = sorted(heights, key=cost)
    usual = sorted_heights[0]
    height = choose(
        "rows_of_a_tile", best(sorted_heights, usual), usual, sorted_heights, lambda h: cost(h)[0]
    )
    return _in_tiles(lead, height, depth, cpu, max(depth, deepest))


def _fits_rows(height: int, dtype: str, cpu: Machine) -> bool:
    return height == 1 or RegisterTile(height, block_vectors(cpu, dtype)).fits(cpu)


def _in_tiles(lead: Shape, height: int, depth: int, cpu: Machine, deepest: int = 0) -> Rows:
    """Tiles in even groups; a symbolic number of rows in parts, where `deepest` is given."""
    found = numbered(lead, height)
    size = depth if pays_rows_first(found.planned, depth, cpu) else _at_a_time(depth, cpu)
    parts = _parts(found.planned, deepest, cpu) if deepest and found.symbolic else 1
    return rows_in_tiles(found, height, max(1, _rows_held(size, cpu) // height), parts)


def _parts(rows: int, depth: int, cpu: Machine) -> int:
    """Parts of a symbolic number of rows, each of which L2 holds, where that pays."""
    usual = -(-rows // _rows_held(depth, cpu)) if pays_rows_first(rows, depth, cpu) else 1
    return choose("parts_of_rows", range(1, MOST_PARTS + 1), min(usual, MOST_PARTS))


def pays_rows_first(rows: int, depth: int, cpu: Machine) -> bool:
    """Where L2 does not hold all rows, each panel of columns reads them from L3; with the groups of
    rows that L2 does hold outermost, each group reads the weight: less, if a group has more rows
    than a panel columns (256x1536x384: 2.67 ms against 2.86; Cascade Lake, Nov 2026).
    """
    columns = max(BLOCK, 2 * cpu.lanes("float32"))
    return 3 * columns <= _rows_held(depth, cpu) < rows


def _rows_held(size: int, cpu: Machine) -> int:
    """Rows of which three quarters of L2 hold so many elements each."""
    return cpu.l2_bytes * 3 // 4 // (4 * size)


def product_plan(
    rows: Rows,
    depth: int,
    units: int,
    dtype: str,
    cpu: Machine,
    name: str,
    melted: int = 0,
    passes: int = 0,
    widest: int = MOST_WIDE_BLOCKS,
    halves: bool = False,
    partial: int = 1,
) -> ProductPlan:
    """The plan of one product. `melted`: tiles of a task that computes its rows itself; `passes`:
    over the weight, one after the other; `widest`: blocks of a tile, at most; `halves`: its weight
    is of halves, which become floats; `partial`: sums that the caller makes of one row of others.
    """
    blocks = paired_blocks(units)
    vectors = block_vectors(cpu, dtype)
    if halves:
        partial = partial_sums(rows, depth, cpu.in_flight // vectors)
    widest = 1 if partial > 1 else min(widest, most_wide_blocks(rows, halves, cpu))
    found = numbered(rows.lead, rows.height)
    at_once = rows.each if passes or found.by_outer else math.prod(rows.tiles)
    at_once //= max(1, passes)
    sizes = [melted] if melted else _groups(rows, cpu, _at_a_time(depth, cpu), passes)
    tiles = tiles_of(rows.height, blocks, dtype, cpu, widest)
    tile, group = _panels(at_once, blocks * vectors, cpu, sizes, tiles)
    orders = [True] if melted else [False, True]
    count = at_once * rows.height if passes else found.planned
    pays = bool(melted) or pays_rows_first(count, depth, cpu)
    rows_first = choose(f"{name}.rows_first", orders, pays)
    by_rows = rows_first and not melted
    if by_rows:
        sizes = _groups(rows, cpu, depth, passes)
        tile, group = _panels(at_once, blocks * vectors, cpu, sizes, tiles)
    # As a number of groups: one fits every number of rows, and so do the parts of the rows.
    counts = [rows.each // size for size in next_to(sizes, group)]
    fitting = rows.each // group if found.by_outer else rows.parts if by_rows else 1
    group = rows.each // choose(f"{name}.groups", counts, rows.each // group, [fitting])
    usual = tile.vectors // vectors
    widths = [t.vectors // vectors for t in tiles]
    wide = choose(f"{name}.wide", best(widths, usual), usual, [usual, *widths])
    tile = RegisterTile(rows.height, wide * vectors)
    pieces = _pieces(rows, depth, wide, cpu, name)
    parallel = is_worth_it(rows.padded * blocks * vectors * depth, LEAST_STEPS)
    return ProductPlan(
        rows, tile, cpu.lanes(dtype), blocks, wide, depth, pieces, group, rows_first, bool(melted),
        parallel, passes, partial,
    )  # fmt: skip


def passes_of_one(rows: Rows, depth: int, cpu: Machine) -> int:
    """Passes of a product alone: none where groups of rows come first, which read them once."""
    planned = numbered(rows.lead, rows.height).planned
    return 0 if pays_rows_first(planned, depth, cpu) else passes_over(rows, depth, cpu)


def passes_over(rows: Rows, width: int, cpu: Machine) -> int:
    """Passes of each outer index over a weight, so that a quarter of L3 holds `width` elements of
    each row of one; 0 where it holds them of all rows.

    Every panel of columns reads all rows of a pass, every pass all of the weight, which stays in L3
    beside them (16x197x768x3072x768: 5.3 ms an image in one, 3.6 in 16; Zen 5, Nov 2026).
    """
    held = max(1, max(cpu.l3_bytes, cpu.l2_bytes) // 4 // (4 * width * rows.height))
    symbolic = numbered(rows.lead, rows.height).symbolic
    most = min(rows.each * rows.height // LEAST_PASS, 1 if symbolic else rows.each)
    passes = [0, *divisors(rows.each, most)]
    usual = next((p for p in passes[1:] if rows.each <= held * p), passes[-1])
    if math.prod(rows.tiles) <= held or rows.tasks == usual == 1:
        usual = 0
    lasting = [] if symbolic or most == 0 else [max(1, usual)]
    return choose("passes", next_to(passes, usual), usual, lasting)


def _pieces(rows: Rows, depth: int, wide: int, cpu: Machine, name: str) -> int:
    """Pieces of k, where several tiles of rows can share one: half of L1 holds it."""
    if rows.each == 1 and not for_every_size():
        return 1
    size = _piece(depth, wide, cpu)
    usual = depth // size if size >= LEAST_PIECE else 1
    most = max(1, depth // LEAST_PIECE)
    return choose(f"{name}.pieces", next_to(divisors(depth, most), usual), usual)


def _at_a_time(depth: int, cpu: Machine) -> int:
    """Of k, at most: a piece, or all where it is cut into none, such as a prime number of steps."""
    sizes = [_piece(depth, wide, cpu) for wide in range(1, MOST_WIDE_BLOCKS + 1)]
    return MOST_PIECE if min(sizes) >= LEAST_PIECE else max(MOST_PIECE, depth)


def _piece(depth: int, wide: int, cpu: Machine) -> int:
    """Steps of k of which half of L1 holds a panel of so many blocks."""
    return divisor(depth, min(MOST_PIECE, cpu.l1_bytes // (wide * LINE)))


def _groups(rows: Rows, cpu: Machine, size: int, passes: int) -> list[int]:
    """Tiles of a group of which L2 holds `size` of k."""
    return divisors(rows.each // max(1, passes), max(1, _rows_held(size, cpu) // rows.height))


def _panels(
    tiles: int, vectors: int, cpu: Machine, groups: Sequence[int], fitting: Sequence[RegisterTile]
) -> tuple[RegisterTile, int]:
    """The register tile, and how many of `tiles` share a panel of a weight of so many vectors:
    large groups that fall evenly on the cores.
    """

    def busiest(size: tuple[RegisterTile, int]) -> tuple[float, int]:
        tile, group = size
        panels = vectors // tile.vectors
        tasks = tiles // group * panels
        share = -(-tasks // cpu.cores) * group * cycles(tile, cpu)
        # A group of one tile has nothing that shares its panel.
        return share * (1 + 1 / (8 * group)), -group

    return min(((t, g) for t in fitting for g in groups), key=busiest)


def melted_tiles(rows: Rows, depth: int, units: int, cpu: Machine) -> int:
    """Tiles of a task of rows that are computed in front of its product, or 0 for no such tasks:
    where they are short, leave a core idle for long, or the weight does not stay in L2.
    """
    tasks = max(1, -(-cpu.cores // rows.tasks))
    most = min(MOST_TASK_ROWS, _rows_held(depth, cpu))
    tiles = divisor(rows.each, max(1, min(most // rows.height, rows.each // tasks)))
    count = rows.tasks * rows.each // tiles
    even = cpu.is_even(count, MOST_UNEVEN_ROWS)
    held = paired_blocks(units) * LINE * depth <= cpu.l2_bytes // 2
    usual = tiles if held and even and tiles * rows.height >= LEAST_ROWS else 0
    sizes = [0, *next_to(divisors(rows.each, rows.each), tiles)]
    return choose("tiles_of_a_task", sizes, usual, (0,))


def lead_of(shape: Shape) -> tuple[int, ...]:
    """The rows of a tensor: all extents but the last."""
    return tuple(int(extent) for extent in shape[:-1])
