"""Register tiles: how many rows and vectors of sums a core holds while it multiplies and adds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...machine import LINE, Machine

# Columns of a block of packed weights, float32: a cache line. One vector of AVX-512, two of AVX2,
# four of SSE and NEON; packed weights serve every CPU.
BLOCK = LINE // 4


def blocks_of(channels: int) -> int:
    """Blocks of packed weights that so many columns or output channels fill."""
    return -(-channels // BLOCK)


@dataclass(frozen=True)
class RegisterTile:
    """`rows` x `vectors` sums. A step of k loads the vectors and broadcasts an element a row."""

    rows: int
    vectors: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.vectors} vectors"

    @property
    def sums(self) -> int:
        """Registers that hold sums."""
        return self.rows * self.vectors

    @property
    def size(self) -> tuple[int, int]:
        """As decisions know it."""
        return self.rows, self.vectors

    def fits(self, cpu: Machine, held: int | None = None) -> bool:
        """Whether nothing spills. A step holds `held` operands, by default its vectors, and reads
        the others in turn: as an operand in memory, or through one more register. A product that is
        no addition at once is in another one.
        """
        held = self.vectors if held is None else held
        in_turn = (0 if cpu.broadcasts else 1) + (0 if cpu.fused else 1)
        return self.sums <= most_sums(cpu) and self.sums + held + in_turn <= cpu.vector_registers

    def cycles(self, cpu: Machine) -> float:
        """Of a step of k: the multiply-adds, the loads, or the wait for the last step's sums."""
        return max(
            self.sums / cpu.multiply_adds, (self.rows + self.vectors) / cpu.loads, cpu.latency
        )

    def efficiency(self, cpu: Machine) -> float:
        """The share of the core's multiply-adds that it does."""
        return self.sums / cpu.multiply_adds / self.cycles(cpu)


def most_sums(cpu: Machine) -> int:
    """Registers that may hold sums: a quarter is for operands and addresses' copies (14 x 2 of 32
    spill with LLVM 22; 6 x 2 and 4 x 3 of 16 do not). Where a product overwrites a copy of an
    operand, 12 sums of 16 registers spill, and 10 do not (SSE).
    """
    return cpu.vector_registers * (5 if cpu.copies else 6) // 8


def register_tiles(cpu: Machine, rows: Iterable[int], vectors: Iterable[int]) -> list[RegisterTile]:
    """The tiles of these extents that fit in registers, the best first: by multiply-adds, then by
    loads a multiply-add, then the smaller one. At least 1 x 1.
    """
    found = [RegisterTile(r, v) for v in set(vectors) for r in set(rows)]
    fitting = [tile for tile in found if tile.fits(cpu)]

    def order(tile: RegisterTile) -> tuple[float, float, int]:
        loads = (tile.rows + tile.vectors) / tile.sums
        return (-round(tile.efficiency(cpu), 3), round(loads, 3), tile.sums)

    return sorted(fitting, key=order) or [RegisterTile(1, 1)]
