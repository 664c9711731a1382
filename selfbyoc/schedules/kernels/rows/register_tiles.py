"""The register tiles that a product of rows may have, and what a step of one takes."""

from __future__ import annotations

import math

from ....language.decisions import for_every_size
from ....machine import Machine
from ...steps.blocks import divisor
from ...steps.candidates import divisors
from ...steps.tiles import RegisterTile
from .forms import block_vectors
from .layout import Rows

MOST_ROWS = 8  # of a tile: 12 x 2 and 14 x 1 vectors of AVX-512 are no faster than 8 x 2
# Blocks of a tile: 1 x 768 x 768 is bound by reading the weight, 8 are no faster.
MOST_WIDE_BLOCKS = 4
OF_FEW_ROWS = 0.08  # of the time of a tile of one row is for reading its weight


def most_wide_blocks(rows: Rows, halves: bool, cpu: Machine) -> int:
    """Blocks of a tile, at most. One, of halves that become floats, where an element of a row is an
    operand in memory and 8 sums keep the core busy: 128x2048x8192 of float16 takes 23.3 ms by two
    blocks, 19.3 by one, of floats 20.2; 16 rows 3.1 and 2.6; but 8, one tile, for which nothing is
    prefetched, 1.6 and 2.0 (Zen 4, weights in memory; by AVX2 6 x 2 vectors are as fast as of
    floats).
    """
    is_alone = math.prod(rows.tiles) == 1 and not for_every_size()
    pays = cpu.broadcasts and 2 * cpu.in_flight <= MOST_ROWS
    return 1 if halves and pays and not is_alone else MOST_WIDE_BLOCKS


def partial_sums(rows: Rows, steps: int, wanted: int) -> int:
    """Sums of one row side by side, each over every so many of the steps: as many as are wanted, or
    the most that divide these; 1: none, for there are more rows, or half of them would be missing.

    One block of columns keeps the core busy then, and reads the weight as it lies. 1x896x4864 of
    float16 takes, beside four blocks that are as many streams, 0.90 of the time with the weight in
    memory and 0.92 in L3, by AVX2 0.87 and 0.73; 2048x8192 0.96, 4864x896 0.99. Of floats 1.01 to
    1.06, of bfloat16 1.01 to 1.03 in memory; of float16 two rows 0.90 to 1.07, three 0.96 to 1.20,
    five and eight 1.15 to 1.9 (Zen 5, Dec 2026).
    """
    if rows.padded > 1 or for_every_size():
        return 1
    count = divisor(steps, max(1, wanted))
    return count if 2 * count >= wanted else 1


def tiles_of(height: int, blocks: int, dtype: str, cpu: Machine, widest: int) -> list[RegisterTile]:
    """The register tiles of so many rows that fit."""
    vectors = block_vectors(cpu, dtype)
    found = [RegisterTile(height, w * vectors) for w in divisors(blocks, widest)]
    # Of one row, the row's element is held and the weight's vectors are read in turn.
    fitting = [t for t in found if t.fits(cpu, 1 if height == 1 else None)]
    return fitting or [RegisterTile(height, vectors)]


def cycles(tile: RegisterTile, cpu: Machine) -> float:
    """Of a step of k, with what the core waits for sums: with fewer than twice those in flight it
    does (120x768x768: 6 x 2 vectors of AVX2 reach 95% of the peak, 5 x 2 88%, 4 x 2 84%; of AVX-512
    8 x 2 91%, 8 x 3 and 6 x 4 90%; Cascade Lake, Nov 2026). And the fewer rows, the more of the
    weight it reads for each (384 and 768 to 384..3072, 48 and 120 rows, beside tiles of 8: of 2
    rows 1.04, of 3 1.02, of 4 1.01; Zen 4, Nov 2026).
    """
    missing = max(0.0, 2 - tile.sums / cpu.in_flight)
    return tile.cycles(cpu) * (1 + missing / 6) * (1 + OF_FEW_ROWS / tile.rows)
