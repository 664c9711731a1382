"""What one core does at a time: blocks of tiles or channels as tasks, and the register tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....machine import LINE, Machine
from ...steps.loops import is_even
from ...steps.tiles import BLOCK, RegisterTile
from .tiling import Tiling, tilings

STACK = 1 << 10  # bytes that TVM keeps on the stack; sums that are larger stay in memory


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
        return sums <= STACK and self.registers.fits(cpu)

    def time(self, tiles: int, cpu: Machine) -> float:
        """Cycles of a core for one pair of channels of so many tiles, one element of each."""
        steps = -(-tiles // self.tiles)
        return steps * self.registers.cycles(cpu) / (self.blocks * self.lanes)


def blocks_of(channels: int) -> int:
    """Blocks of 16 channels."""
    return -(-channels // BLOCK)


def weight_bytes(channels: Sequence[int], size: int) -> int:
    """Of the transformed weights of (input, output) channels."""
    return 4 * size**2 * channels[0] * blocks_of(channels[1]) * BLOCK


def blocks_apart(t: Tiling, channels: Sequence[int], cpu: Machine) -> bool:
    """Whether blocks are the tasks: even, and each core keeps all weights in its L2."""
    return is_even(t.tasks, cpu) and weight_bytes(channels, t.size) <= cpu.l2_bytes


def products(tiles: int, blocks: int, cpu: Machine, tasks: int = 0) -> list[Products]:
    """The register tiles for a block of tiles, and for blocks of output channels; best first.

    Where steps of channels are tasks, `tasks` for each step, these should be even.
    """
    vector = min(BLOCK, cpu.lanes("float32"))
    parts = [w for w in (BLOCK // 4, BLOCK // 2) if w >= vector]
    widths = [*((1, w) for w in parts), *((n, BLOCK) for n in (1, 2, 3) if blocks % n == 0)]
    shapes = [Products(r, *w, vector) for r in range(1, 16) for w in widths]

    def order(p: Products) -> tuple[float, float, int]:
        steps = blocks // p.blocks * tasks or cpu.cores
        even = steps / (-(-steps // cpu.cores) * cpu.cores)
        r = p.registers
        loads = (r.rows + r.vectors) / r.sums
        return round(p.time(tiles, cpu) / even, 3), loads, p.blocks

    return sorted((p for p in shapes if p.fits(cpu)), key=order) or [Products(1, 1, vector, vector)]


def usual_products(t: Tiling, channels: Sequence[int], cpu: Machine, apart: bool) -> list[Products]:
    """The register tiles for a tiling, best first."""
    return products(t.block, blocks_of(channels[1]), cpu, 0 if apart else t.tasks)


def time(t: Tiling, channels: Sequence[int], cpu: Machine) -> float:
    """Cycles until the last core is done, for one pair of channels and one element of each tile.

    From L3, at twice the speed of memory, come the weights of a task, for which few tiles wait, and
    the inputs of tasks that are channels: these are written and read.
    """
    apart = blocks_apart(t, channels, cpu)
    p = usual_products(t, channels, cpu, apart)[0]
    blocks = blocks_of(channels[1])
    tasks, part = (t.tasks, 1.0) if apart else (t.tasks * (blocks // p.blocks), p.blocks / blocks)
    last_cache = 2 * cpu.memory_bytes
    each = max(p.time(t.block, cpu), LINE / BLOCK / last_cache)
    inputs = 0 if apart else 8 * t.tasks * t.block / last_cache / channels[1] / cpu.cores
    return -(-tasks // cpu.cores) * part * each + inputs


def usual_tiling(
    out: Sequence[int], m: int, window: int, channels: Sequence[int], cpu: Machine
) -> Tiling:
    """The blocks that take the least time; the largest of such."""
    found = tilings(out, m, window, cpu)
    return min(found, key=lambda t: round(time(t, channels, cpu), 3))


def work(t: Tiling, channels: Sequence[int], cpu: Machine) -> float:
    """Cycles of all cores for one pair of channels and one element of each tile, none idle."""
    apart = blocks_apart(t, channels, cpu)
    p = usual_products(t, channels, cpu, apart)[0]
    return p.time(t.block, cpu) * t.tasks / cpu.cores
