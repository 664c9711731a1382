"""The loops over a window in a register tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....language.decisions import choose
from ....tvm.types import Loop, Schedule
from ...steps.blocks import Facts
from ...steps.loops import Finish, start_sums
from ...steps.registers import unroll_tile
from ...steps.tiles import RegisterTile
from .layer import Layer

# Of vectors in a body without loops: 3x3 taps of 16 registers, or 5x5 of 2. Of more LLVM loads
# operands so early that sums spill: 5x5, 32 to 96 channels on 27x27 pixels take 460 us, and 260
# with a loop over the window's rows (Zen 5, Nov 2026).
MOST_PRODUCTS = 160


@dataclass(frozen=True)
class Window:
    """Which loops over the taps of a window are unrolled: a tap's offset is constant then."""

    rows: bool
    columns: bool

    def unrolled(self, row: Loop, column: Loop) -> list[Loop]:
        """Which of its two loops are."""
        asked = ((row, self.rows), (column, self.columns))
        return [loop for loop, is_unrolled in asked if is_unrolled]


UNROLLED = Window(True, True)


def window_of(layer: Layer, tile: RegisterTile) -> Window:
    """The loops that are unrolled for a register tile."""
    high, wide = layer.window
    products = high * wide * tile.sums
    either = high > 1 and MOST_PRODUCTS // 2 <= products <= 3 * MOST_PRODUCTS
    usual = products <= MOST_PRODUCTS
    ways: Sequence[bool] = (True, False) if either else (usual,)
    rows = choose(f"{layer.name}.whole_window", ways, usual)
    return Window(rows, wide <= 7 or high * wide <= 25)


def accumulate(
    sch: Schedule,
    block: Facts,
    tile: Sequence[Loop],
    window: Window,
    vector: int,
    split: Callable[[Loop], Loop] | None = None,
) -> Finish:
    """The sums of a register tile: reduction outermost, its window unrolled, the tile's loops
    inside. `split` cuts the outermost loop, and says which one is now.
    """
    loops = list(sch.get_loops(block.block))[-len(block.axes) :]
    reduction = [loops[a.position] for a in block.reduction]
    unroll_tile(sch, reduction, tile, vector)
    for loop in window.unrolled(*reduction[-2:]):
        sch.unroll(loop)
    start = split(reduction[0]) if split else reduction[0]
    return lambda: start_sums(sch, block.block, start, min(1, len(tile) - 1))
