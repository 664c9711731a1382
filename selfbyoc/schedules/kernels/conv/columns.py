"""Windows over one channel as words of neighbouring columns: an image of bytes.

The padded copy is of bytes, its rows as long as those of lanes.py with the columns of all phases
side by side. A word holds two or four columns under a row of the window: what is a vector of words
is a shuffle of bytes (tvm/columns.py), and a 3x3 three products of words of four, or six of two.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....machine import Machine
from ....tvm import te, tir
from ....tvm.columns import SPARE, columns
from ....tvm.own_ops import BYTES, LEVELS_OF
from ....tvm.types import Attrs, PrimExpr, Tensor
from ...steps.tensors import extents
from ..words import counted
from .lanes import Lanes, Reader

AXIS = 3  # of a weight [O, 1, H, W], along which its words lie
STEPS = (1, 2, 4)  # columns from one output to the next that words are shuffled for


def pays(cpu: Machine) -> bool:
    """Whether a CPU makes a vector of any bytes of another in one instruction (what has products of
    bytes has that, too: SSSE3, ARMv8), and multiplies the words faster than floats. With AVX-512 it
    does by VNNI alone: one port shuffles, twice for 16 words (vpermb: once). By llvm-mca a vector
    of a 3x3 takes skylake-avx512 12 cycles, 5 of floats; cascadelake 6, icelake-server 3.5 and 9.
    """
    has_bytes = any(LEVELS_OF[made.kind] == LEVELS_OF[BYTES] for made in cpu.known)
    return has_bytes and (cpu.vector_bytes < 64 or not cpu.product(BYTES).apart)


@dataclass(frozen=True)
class Columns:
    """Words of a kind under rows of a window so many columns wide; `level` is around the image."""

    products: str
    width: int
    level: PrimExpr

    def reader(self, x: Tensor, p: Lanes, attrs: Attrs, name: str) -> tuple[Reader, Tensor]:
        """As lanes.py has it: what reads a word at (n, channel, lane) under row y and word k of the
        window, and the copy that it reads.
        """
        (sh, sw), (dh, _) = attrs["strides"], attrs["dilation"]
        word, copy = LEVELS_OF[self.products], self._copied(x, p, attrs, f"{name}_pad")
        last = int(copy.shape[3]) - 1

        def read(n: PrimExpr, c: PrimExpr, lane: PrimExpr, y: PrimExpr, k: PrimExpr) -> PrimExpr:
            phase = tir.floormod(y * dh, sh)
            at = (lane + tir.floordiv(y * dh, sh) * p.pitch) * sw

            def level(i: int) -> PrimExpr:
                column = k * word + i
                if i >= self.width % word > 0:
                    # After the last column comes that one again; a weight is zero there.
                    column = tir.Min(column, self.width - 1)
                return copy(n, c, phase, at + column)

            return columns([level(i) for i in range(word)], copy(n, c, phase, last))

        return read, copy

    def _copied(self, x: Tensor, p: Lanes, attrs: Attrs, name: str) -> Tensor:
        """[N, C, H, W] -> [N, C, vertical phase, bytes]."""
        (top, left), (sh, sw) = attrs["padding"][:2], attrs["strides"]
        batch, channels, height, width = extents(x)
        pitch = p.pitch * sw
        rows = p.length // p.pitch + -(-(SPARE + sw) // pitch)

        def element(n: PrimExpr, c: PrimExpr, f: PrimExpr, at: PrimExpr) -> PrimExpr:
            row = tir.floordiv(at, pitch) * sh + f - top
            column = tir.floormod(at, pitch) - left
            inside = tir.all(row >= 0, row < height, column >= 0, column < width)
            level = counted(x(n, c, row, column), x.dtype, self.products).astype("uint8")
            return tir.if_then_else(inside, level, self.level.astype("uint8"))

        return te.compute((batch, channels, p.phases[0], rows * pitch), element, name=name)
