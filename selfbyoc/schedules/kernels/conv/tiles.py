"""Register tiles of convolutions, and what they cost."""

from __future__ import annotations

from functools import lru_cache

from ....machine import Machine
from ...steps.candidates import divisors
from ...steps.tiles import RegisterTile, register_tiles

MOST_VECTORS = 4  # of a tile: longer ones only fill more lanes that nobody reads
# Of a load, by that of a multiply-add. A core that does one of these a cycle has loads done
# meanwhile: 64x56x56 to 128, 3x3 at stride 2, one core of Zen 4 with AVX-512, Nov 2026: of its peak
# 88% by 7 x 2 vectors, 87% by 6 x 2, 89% by 14 x 1.
LOAD_TIME, HIDDEN_LOAD_TIME = 1.0, 0.1
# Cycles of a core to transpose an element of a result whose lanes are channels, and to store it: of
# a row, and where the image is one. One core of Zen 4, AVX-512, Nov 2026: 128x28x28 to 512 1.4
# (row by row), 256x14x14 to 1024 0.65 (at once), 1x1.
TRANSPOSE_CYCLES, TRANSPOSE_FLAT_CYCLES = 1.3, 0.7


@lru_cache(maxsize=4096)  # every convolution asks several times, for few rows and machines
def tiles_for(rows: int, cpu: Machine) -> tuple[RegisterTile, ...]:
    """The tiles for blocks of so many rows, the best first."""
    found = register_tiles(cpu, divisors(rows, rows), range(1, MOST_VECTORS + 1))
    return tuple(sorted(found, key=lambda tile: time_of(tile, cpu) / tile.sums))


def pixels_read(pixels: int, taps: int, stride: int, apart: int) -> int:
    """Different pixels that so many taps in a row read for neighbouring results: LLVM keeps each in
    a register from tap to tap.
    """
    return len({stride * x + apart * tap for x in range(pixels) for tap in range(taps)})


def time_of(tile: RegisterTile, cpu: Machine) -> float:
    """Cycles of a step of k: a load costs about what a multiply-add does, as soon as it is not
    from L1. 256x56x56 to 64 channels on Cascade Lake, Nov 2026: of AVX-512's peak 47% by 8 x 2
    vectors, 55% by 8 x 3; of AVX2's 52% by 8 x 1, 66% by 4 x 2, 67% by 4 x 3.
    """
    hidden = cpu.broadcasts and cpu.multiply_adds == 1
    cost = HIDDEN_LOAD_TIME if hidden else LOAD_TIME
    return tile.cycles(cpu) * (1 + cost * (tile.rows + tile.vectors) / tile.sums)
