"""Chunks of rows, register tiles and windows side by side: what a plan takes of a machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....machine import Machine
from ...steps.faults import Faults, undivided
from ...steps.tiles import BLOCK, RegisterTile
from .form import Form, Pixels

# Time of an image in one chunk, of that in chunks, which compute the halo and read all weights.
# Several cores in one chunk give each other all of the depthwise result: two cores of Zen 4, us in
# one chunk and in two, and where they share no cache (Nov 2026): 64x14x14 e384 111 and 109, 187 and
# 116; 96x14x14 e576 224 and 233, 366 and 241; pairs 64x56x56 184 and 168, 364 and 172; in chunks
# that are not even 160x7x7 e960 162 and 201, 220 and 208.
MOST_WHOLE_TIME, MOST_SHARED_TIME = 1.25, 0.9
LEAST_PIXELS = 64  # of a chunk: of fewer, each core waits for all weights
# The share of the work on rows under the windows, where these are expanded and where they are only
# transposed; the rest is on rows of the result. 256x6x160, 5x5, in one chunk 660 us and in two 672.
EXPANDED_SHARE, TRANSPOSED_SHARE = 0.5, 0.15
# Time of tiles over flat rows of a chunk, of those that end with a row. 128x28x28, in two chunks,
# AVX2, us: 311 and 153; 120x20x20, 5x5: 211 and 81; others within 4% (two cores of Zen 4).
FLAT_TIME = 1.05
MOST_TOGETHER = 8  # windows; more share little
LEAST_TILES = 6  # that read the same weights, for sums in parts
MOST_EXPANDED = 3 * BLOCK  # channels of the expanded image that exist at a time, at most


@dataclass(frozen=True)
class Run:
    """Pixels, and the vectors of channels that a register tile of them has."""

    pixels: Pixels
    vectors: int

    def faults(
        self, rows: int, width: int, count: int, cpu: Machine | None, *, in_pairs: bool = False
    ) -> Faults:
        """Of so many rows of pixels and vectors; without a machine these are no registers."""
        yield from self.pixels.faults(rows, width)
        yield from undivided("vectors", count, self.vectors)
        tile = RegisterTile(self.pixels.tile, self.vectors)
        if cpu is not None and not _fits(tile, cpu, in_pairs=in_pairs):
            yield f"{tile} of {cpu.vector_registers} registers spill"

    @property
    def by_pixel(self) -> bool:
        """Whether a step of k takes pixel by pixel: its vectors then stay in registers, else the
        pixels' broadcasts. The fewer of both, or they spill (6 x 2 of 16 registers: 67% of the peak
        with the 6 in registers).
        """
        return self.vectors <= self.pixels.tile


def register_runs(
    count: int,
    pixels: Sequence[Pixels],
    tasks: Callable[[Run], int],
    cpu: Machine,
    steps: int = 0,
    flat: float = 1.0,
) -> list[Run]:
    """Register tiles for `count` vectors of channels over rows of pixels, the best first.

    Vectors after the last one, up to a whole block of the packed weight, are computed where that
    makes groups of several: 91 and 23 are 92 and 24.

    `pixels` are cut into bands, and not yet into tiles; `tasks` says how many there are then. Sums
    of so many `steps` read weights that L1 may not hold: from L2 for each tile then, or once for
    all tiles of a band. Tiles over several rows take `flat` times as long.
    """
    most = max(1, MOST_EXPANDED // cpu.lanes("float32"))
    padded = most_vectors(count, cpu.lanes("float32"))
    vectors = [v for v in range(1, min(count, most) + 1) if whole_groups(count, v) <= padded]
    found = [
        Run(replace(p, tile=tile), v)
        for v in vectors
        for p in pixels
        for tile in range(1, min(p.width * p.band, cpu.vector_registers) + 1)
        if _fits(RegisterTile(tile, v), cpu, in_pairs=bool(steps))
    ]

    def far(run: Run) -> float:
        """Cycles of a step for what is read from L2, in multiply-adds."""
        read = run.vectors * cpu.vector_bytes
        if read * steps <= cpu.l1_bytes // 2:
            return 0.0
        shared = run.pixels.tiles if run.pixels.tiles >= LEAST_TILES else 1
        return read / shared / cpu.l2_bandwidth * cpu.multiply_adds

    def cost(run: Run) -> tuple[float, int, int]:
        tile = RegisterTile(run.pixels.tile, run.vectors)
        # Of a multiply-add, with those of pixels that hang over; loads count though they hide.
        loads = (tile.rows + tile.vectors) / tile.sums
        cycles = (1 / tile.efficiency(cpu) + loads / 4 + far(run) / tile.sums) / run.pixels.use
        cycles *= flat if run.pixels.band > 1 else 1
        cycles *= whole_groups(count, run.vectors) / count
        # A band of several rows is written in longer pieces.
        return cycles * cpu.unevenness(tasks(run)), run.pixels.bands, -tile.sums

    return sorted(found, key=cost)


def whole_groups(count: int, vectors: int) -> int:
    """So many vectors, in whole groups of some."""
    return -(-count // vectors) * vectors


def most_vectors(count: int, lanes: int) -> int:
    """Vectors of the blocks in which the weight of so many vectors is packed."""
    return -(-count * lanes // BLOCK) * BLOCK // lanes


def _fits(tile: RegisterTile, cpu: Machine, *, in_pairs: bool) -> bool:
    """Whether nothing spills. The projection's pixels may be loaded in pairs of channels, and hold
    a register each then: neoverse-n1, 6 x 4 13 spills a turn, 61% of the peak, 5 x 4 none, 99%.
    """
    if in_pairs and cpu.in_pairs:
        return tile.fits(cpu, tile.vectors + tile.rows + 1)
    return tile.fits(cpu)


def together(width: int, taps: int, outputs: int, cpu: Machine) -> list[int]:
    """Neighbouring windows that share the weights they read, the best first: few that hang over,
    and as many sums as a quarter of the registers. Twice as many spill, and cost some 15%. What
    hangs over is multiplied for all outputs too: 728x19x19 to 728, 4 together 4661 us, each by
    itself 4509 (AVX2, one core of Zen 3).
    """
    few = cpu.vector_registers // 4
    products = outputs / cpu.multiply_adds  # cycles for a vector of a column

    def cost(n: int) -> float:
        reads = taps * (n + 1) / n / cpu.loads
        return -(-width // n) * n * (reads * (1 if n <= few else 1.15) + products)

    return sorted(range(1, min(width, MOST_TOGETHER) + 1), key=cost)


def chunk_rows(f: Form, batch: int, channels: int, cpu: Machine, expands: bool = True) -> list[int]:
    """Rows of a chunk, the best first. All rows where some blocks of them fit in the L2 well, and
    what is between the two regions too; else rows that fit and cost the least, counting the halo
    and the cores that idle.

    64x14x14 e384, 2 cores of Zen 5: 51 us in one chunk, 64 in chunks of 4 rows. 24x56x56 e144: in
    chunks of 28 rows 131 us, of 14 133, of 7 140, of 4 149. One core of Cascade Lake (L2 of 1 MB),
    AVX2, Nov 2026, by blocks of 128 steps: 4 x 256x28x28, 3.2 MB between the regions, 73% of the
    peak in one chunk, 76 in two; 512x14x14, 0.4 MB, 85 in one, 77 in two.
    """

    # An image that is only transposed takes a vector of channels at a time.
    at_a_time = MOST_EXPANDED if expands else cpu.lanes("float32")
    share = EXPANDED_SHARE if expands else TRANSPOSED_SHARE

    def fits(rows: int) -> bool:
        return chunk_bytes(f, rows, channels, at_a_time) <= cpu.l2_bytes * 3 // 4

    def work(rows: int) -> float:
        high = replace(f, rows=rows).high / f.strides[0]
        return share * high + (1 - share) * rows

    def cost(rows: int) -> float:
        return -(-batch * replace(f, rows=rows).chunks // cpu.cores) * work(rows)

    fitting = sorted((r for r in range(1, f.out[0] + 1) if r == 1 or fits(r)), key=cost)
    tasks = max(1, batch * channels // cpu.lanes("float32"))
    alone = batch * work(f.out[0]) / cpu.cores * cpu.unevenness(tasks)
    held = _framed_bytes(f, f.out[0], at_a_time) <= cpu.l2_bytes // 4
    held = held and batch * _hidden_bytes(f, f.out[0], channels) <= cpu.l2_bytes
    shares = cpu.cores > 1 and fitting[0] * f.out[1] >= LEAST_PIXELS
    most = MOST_SHARED_TIME if shares else MOST_WHOLE_TIME
    if held and alone <= most * cost(fitting[0]):
        return list(dict.fromkeys([f.out[0], *fitting]))
    return [rows for rows in fitting if rows < f.out[0]] or fitting


def chunk_bytes(f: Form, rows: int, channels: int, at_a_time: int) -> int:
    """What is kept of a chunk: the rows under its windows, and its windows."""
    return _framed_bytes(f, rows, at_a_time) + _hidden_bytes(f, rows, channels)


def _framed_bytes(f: Form, rows: int, at_a_time: int) -> int:
    return 4 * at_a_time * replace(f, rows=rows).high * f.image[1]


def _hidden_bytes(f: Form, rows: int, channels: int) -> int:
    return 4 * rows * f.out[1] * channels


def pays_transposing(outputs: int, cpu: Machine) -> bool:
    """Whether to transpose an image into blocks of channels that no pointwise convolution has
    transposed already: its products should fill half a vector.

    By blocks and stage by stage, us on two cores of Zen 4 (Nov 2026). AVX-512: 96x46x46, 7x7, to 24
    channels 161 and 349; 96x92x92, 3x3, to 24 346 and 589; 16x112x112 to 8 57 and 72; 64x96x96 to 4
    175 and 148. AVX2: the first 235 and 391, the last 121 and 355.
    """
    return 2 * outputs >= cpu.lanes("float32")


def pair(values: Sequence[int]) -> tuple[int, int]:
    """Two numbers of an attribute."""
    return int(values[0]), int(values[1])
