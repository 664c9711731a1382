"""What one core does at a time: blocks of tiles or channels as tasks, and the register tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ....machine import Machine
from ...steps.tiles import BLOCK, RegisterTile, blocks_of
from .tiling import Tiling, tilings

STACK_BYTES = 1 << 10  # bytes that TVM keeps on the stack; sums that are larger stay in memory
UNHIDDEN_TIME = 0.25  # of the time to read weights that multiplications do not hide, or theirs


@dataclass(frozen=True)
class Products:
    """The register tile of the products: so many tiles, blocks of output channels, and lanes of a
    block.
    """

    tiles: int
    blocks: int
    lanes: int
    vector: int  # lanes of a register

    def __str__(self) -> str:
        return f"register tile {self.registers}"

    @property
    def registers(self) -> RegisterTile:
        """Rows are tiles."""
        return RegisterTile(self.tiles, self.blocks * self.lanes // self.vector)

    def fits(self, cpu: Machine) -> bool:
        """Whether the sums are in registers: TVM must keep them on the stack for that."""
        sums = 4 * self.tiles * self.blocks * self.lanes
        return sums <= STACK_BYTES and self.registers.fits(cpu)

    def time(self, tiles: int, cpu: Machine) -> float:
        """Cycles of a core for one pair of channels of so many tiles, one element of each."""
        steps = -(-tiles // self.tiles)
        return steps * self.registers.cycles(cpu) / (self.blocks * self.lanes)


def weight_bytes(channels: Sequence[int], size: int) -> int:
    """Of the transformed weights of (input, output) channels."""
    return 4 * size**2 * channels[0] * blocks_of(channels[1]) * BLOCK


def pays_as_blocks(t: Tiling, channels: Sequence[int], cpu: Machine) -> bool:
    """Whether blocks are the tasks, and not steps of channels of one: what takes less time."""
    return t.tasks > 1 and _time(t, channels, cpu, True) <= _time(t, channels, cpu, False)


@lru_cache(maxsize=4096)  # a convolution of symbolic batch asks ten thousand times
def products(tiles: int, blocks: int, cpu: Machine, tasks: int = 0) -> tuple[Products, ...]:
    """The register tiles for a block of tiles, and for blocks of output channels; best first.

    Where steps of channels are tasks, `tasks` for each step, these should be even.
    """
    vector = min(BLOCK, cpu.lanes("float32"))
    parts = [w for w in (BLOCK // 4, BLOCK // 2) if w >= vector]
    widths = [*((1, w) for w in parts), *((n, BLOCK) for n in (1, 2, 3) if blocks % n == 0)]
    shapes = [Products(r, *w, vector) for r in range(1, 16) for w in widths]
    # A vector of weights should serve some tiles.
    shapes = [p for p in shapes if p.tiles >= min(tiles, p.registers.vectors)]

    def order(p: Products) -> tuple[float, float, int]:
        steps = blocks // p.blocks * tasks or cpu.cores
        r = p.registers
        loads = (r.rows + r.vectors) / r.sums
        return round(p.time(tiles, cpu) * cpu.unevenness(steps), 3), loads, p.blocks

    found = sorted((p for p in shapes if p.fits(cpu)), key=order)
    return tuple(found) or (Products(1, 1, vector, vector),)


def usual_products(
    t: Tiling, channels: Sequence[int], cpu: Machine, as_blocks: bool
) -> tuple[Products, ...]:
    """The register tiles for a tiling, best first."""
    return products(t.block, blocks_of(channels[1]), cpu, 0 if as_blocks else t.tasks)


def time(t: Tiling, channels: Sequence[int], cpu: Machine) -> float:
    """Cycles until the last core is done, for one pair of channels and one element of each tile."""
    ways = (True, False) if t.tasks > 1 else (False,)
    return min(_time(t, channels, cpu, as_blocks) for as_blocks in ways)


def _time(t: Tiling, channels: Sequence[int], cpu: Machine, as_blocks: bool) -> float:
    p = usual_products(t, channels, cpu, as_blocks)[0]
    blocks = blocks_of(channels[1])
    tasks = t.tasks * (1 if as_blocks else blocks // p.blocks)
    rounds = -(-tasks // cpu.cores)
    each = p.time(t.block, cpu) * (1 if as_blocks else p.blocks / blocks)
    pairs = channels[0] * channels[1] * t.size**2
    weights, inputs = _traffic(t, channels, cpu, p, rounds, as_blocks)
    weights /= cpu.memory_bandwidth * pairs
    inputs /= cpu.l3_bandwidth * pairs
    work = rounds * each
    return max(work, weights) + UNHIDDEN_TIME * min(work, weights) + inputs


def _traffic(
    t: Tiling, channels: Sequence[int], cpu: Machine, p: Products, rounds: int, as_blocks: bool
) -> tuple[float, float]:
    """Bytes of the weights, as if from memory, and of the transformed inputs from L3 to one core.

    Steps of channels write the inputs of all tiles, and read a block's for each step. One thread of
    an AVX-512 machine, code for znver3, 64x56x56: blocks of 14 tiles as tasks 2.45 ms, of 28 2.43,
    though these read half as much of the weights; steps of channels 3.36 and 2.90. 128x28x28, whose
    inputs stay in L2: 1.52 and 1.40 by channels, with an eighth fewer tiles. 256x14x14 in blocks of
    8 tiles 2.36, by channels of 16 tiles 1.98: 9 MB of weights once and not twice (Nov 2026).
    """
    weights = float(weight_bytes(channels, t.size))
    block = 4 * t.size**2 * t.block * blocks_of(channels[0]) * BLOCK
    if as_blocks:
        stays = block <= cpu.l2_bytes * 3 // 4  # beside sums, and weights on their way
        again = 0 if stays else rounds * blocks_of(channels[1]) // p.blocks
        return weights * (rounds if weights > cpu.l2_bytes else 1), again * block
    everything = block * t.tasks
    step = weights * p.blocks / blocks_of(channels[1])
    weights = weights / cpu.cores * (t.tasks if step > cpu.l2_bytes else 1)
    if everything > cpu.l2_bytes:
        return weights, 2 * everything / cpu.cores + rounds * block
    return weights, 0 if cpu.cores == 1 else everything


def usual_tiling(
    out: Sequence[int], m: int, window: int, channels: Sequence[int], cpu: Machine
) -> Tiling:
    """The blocks that take the least time; the largest of such."""
    found = tilings(out, m, window, cpu)
    return min(found, key=lambda t: round(time(t, channels, cpu), 3))


def work(t: Tiling, channels: Sequence[int], cpu: Machine) -> float:
    """Cycles of all cores for one pair of channels and one element of each tile, none idle."""
    p = usual_products(t, channels, cpu, pays_as_blocks(t, channels, cpu))[0]
    return p.time(t.block, cpu) * t.tasks / cpu.cores
