"""The plan of a window over each channel by itself, whose lanes are the pixels of a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .....machine import Machine
from .....ops.attrs import pair
from ....steps.candidates import decided, divisors
from ....steps.faults import Faults, outside, spilled, undivided, unlike
from ....steps.tiles import RegisterTile
from ..layer import Layer
from ..window import UNROLLED, Window, window_of
from ..windows import Pair, Windows

# Cycles of a core, measured on Zen 3 with AVX2, Nov 2026: 14x14 to 112x112 pixels, 3x3 and 5x5.
CHANNEL_CYCLES = 50.0  # to begin with a channel
ROW_CYCLES, COPY_CYCLES = 8.0, 1.5  # to copy a row with its padding, and a vector of it
APART_CYCLES, SPLIT_CYCLES = 12.0, 3.0  # the same by phases: more for a row, and of a vector
LARGE_TIME = 1.5  # of rows that L1 does not hold beside what is written
LEAST_WIDTH = 16  # 192x14x14 is as fast with groups as lanes; what is costly after it is slower
# Operations that a core has in flight: tiles of few taps overlap, those of many wait for their own
# sums. 192x14x14, 2x1 vectors, 3x3 24 us, 5x5 56 (groups as lanes 40).
IN_FLIGHT = 200


@dataclass(frozen=True)
class DepthwisePlan(Windows):
    """A task is one channel of an image, or a chunk of its rows. Pairs are (vertical, horizontal).

    The rows under a chunk's windows are copied with their padding, into L1, and by the phases of
    their columns: what a tap reads for neighbouring pixels lies together.
    """

    copies: bool  # the rows; not where windows read them as they lie
    rows: int  # of the result, in a chunk
    tile: Pair  # rows and pixels whose sums are in registers at a time
    vector: int  # lanes of a register
    by_rows: bool  # whether chunks are tasks
    unrolled: Window  # which loops over taps
    cycles: float = 0.0  # of one core's share

    def __str__(self) -> str:
        tasks = f"{self.chunks} chunks of {self.rows} rows"
        return f"rows of one channel, register tile of {self.tile} pixels, {tasks}"

    @property
    def registers(self) -> RegisterTile:
        """The sums of a tile."""
        return RegisterTile(self.tile[0], self.tile[1] // self.vector)

    @property
    def chunks(self) -> int:
        """Chunks of an image."""
        return self.out[0] // self.rows

    @property
    def tiles(self) -> int:
        """Of a row; the last one may hang over its end."""
        return -(-self.out[1] // self.tile[1])

    @property
    def high(self) -> int:
        """Rows of the image under a chunk's windows."""
        return (self.rows - 1) * self.strides[0] + self.reach(0) + 1

    @property
    def phases(self) -> int:
        """Of columns: taps read neighbouring pixels `strides` apart."""
        return 1 if self.window[1] == 1 else self.strides[1]

    @property
    def pitch(self) -> int:
        """Columns of a copied row, of one phase."""
        return self.tiles * self.tile[1] + self.reach(1) // self.strides[1]

    @property
    def frame_bytes(self) -> int:
        """What is copied for a chunk."""
        return 4 * self.high * self.phases * self.pitch

    def faults(self, layer: Layer, cpu: Machine) -> Faults:
        """Of this plan for a layer."""
        yield from self.misplaced(layer.image[2:], layer.out[2:], layer.window, layer.attrs)
        yield from unlike("a vector", self.vector, cpu.lanes("float32"))
        yield from undivided("rows", self.out[0], self.rows)
        yield from undivided("rows of a chunk", self.rows, self.tile[0])
        yield from undivided("a tile's pixels", self.tile[1], self.vector)
        yield from outside("a tile's pixels", self.tile[1], self.vector, self.out[1])
        yield from spilled(self.registers, cpu)
        hangs = self.tiles * self.tile[1] > self.out[1]
        if not self.copies and (hangs or any(layer.attrs["padding"]) or self.strides[1] > 1):
            yield "padding, a stride or a tile over the end of a row, and no copy"


def usual_depthwise(layer: Layer, cpu: Machine) -> list[DepthwisePlan]:
    """Plans of several chunks of rows, that which takes the least time first; none for rows that
    are no vector, and for what are no floats.
    """
    vector = cpu.lanes("float32")
    fits = layer.is_depthwise and layer.dtype == "float32"
    fits = fits and layer.out[3] >= max(LEAST_WIDTH, vector)
    if not fits:
        return []
    found = [_of_rows(layer, rows, cpu) for rows in divisors(layer.out[2], layer.out[2])]
    return sorted(found, key=lambda p: (round(p.cycles), -p.rows))


def decided_depthwise(layer: Layer, found: Sequence[DepthwisePlan], cpu: Machine) -> DepthwisePlan:
    """The plan whose chunks and register tile are chosen."""
    made = decided(f"{layer.name}.rows", found, lambda p: p.rows)
    tile = decided(f"{layer.name}.tile", _tiles(layer, made.rows, cpu))
    made = replace(made, tile=tile, copies=_copies(layer, tile))
    return replace(made, unrolled=window_of(layer, made.registers))


def _of_rows(layer: Layer, rows: int, cpu: Machine) -> DepthwisePlan:
    """The plan of chunks of so many rows, and its time."""
    a, images = layer.attrs, layer.out[0] * layer.out[1]
    tile, pads = _tiles(layer, rows, cpu)[0], tuple(a["padding"])
    made = DepthwisePlan(
        image=pair(layer.image[2:]),
        out=pair(layer.out[2:]),
        window=pair(layer.window),
        strides=pair(a["strides"]),
        dilation=pair(a["dilation"]),
        before=pair(pads[:2]),
        copies=_copies(layer, tile),
        rows=rows,
        tile=tile,
        vector=cpu.lanes("float32"),
        by_rows=not cpu.is_even(images),
        unrolled=UNROLLED,
    )
    tasks = images * (made.chunks if made.by_rows else 1)
    time = _channel_cycles(made, cpu) * images * cpu.unevenness(tasks) / cpu.cores
    return replace(made, cycles=time / layer.steps)


def _copies(layer: Layer, tile: Pair) -> bool:
    """Whether a tile reads what is no row of the image as it lies."""
    hangs, a = layer.out[3] % tile[1] > 0, layer.attrs
    return bool(hangs or any(a["padding"]) or a["strides"][1] > 1)


def _tiles(layer: Layer, rows: int, cpu: Machine) -> list[Pair]:
    """Rows and pixels of register tiles, the best first: two rows read what they share once, and
    two vectors share the weights. One core of Zen 3, us, of 1x1, 1x2 and 2x2 vectors (Nov 2026):
    144x56x56, 3x3, 166, 166 and 144; 144x56x56 at stride 2, 5x5, 236, 225 and 188; 192x28x28 68, 68
    and 60.
    """
    vector, wide = cpu.lanes("float32"), layer.out[3]
    vectors = [n for n in (2, 1) if wide >= n * vector]
    # Lanes that hang over the end of a row are computed.
    vectors.sort(key=lambda n: -(-wide // (n * vector)) * n)
    heights = [n for n in (2, 3, 1) if rows % n == 0]
    return [(n, v * vector) for v in vectors for n in heights]


def _channel_cycles(p: DepthwisePlan, cpu: Machine) -> float:
    """Of one channel of an image."""
    apart = p.phases > 1
    row = ROW_CYCLES + (APART_CYCLES if apart else 0)
    vectors = p.phases * p.pitch / p.vector
    copied = row + vectors * (SPLIT_CYCLES if apart else COPY_CYCLES)
    copied *= LARGE_TIME if p.frame_bytes > cpu.l1_bytes // 2 else 1.0
    tiles = p.chunks * p.rows // p.tile[0] * p.tiles
    rows = p.chunks * p.high * copied if p.copies else 0.0
    return CHANNEL_CYCLES + rows + tiles * _tile_cycles(p, cpu)


def _tile_cycles(p: DepthwisePlan, cpu: Machine) -> float:
    """Of a register tile: its products, or the wait for those before them."""
    taps, sums = math.prod(p.window), p.registers.sums
    together = IN_FLIGHT / (taps * (sums + 1))
    return taps * max(sums / cpu.multiply_adds, cpu.latency / max(1.0, together))
