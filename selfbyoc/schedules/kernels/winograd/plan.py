"""What is decided about a Winograd convolution, once for packing, compute and schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....language.decisions import choose, is_symbolic
from ....machine import Machine
from ....tvm.types import Attrs
from ...steps.blocks import stored_at_once
from ...steps.candidates import best, decided
from ...steps.faults import Faults, outside, undivided, unlike
from ...steps.tiles import BLOCK, blocks_of
from ..conv.layer import Layer
from .cost import costs, near, usual_form
from .tasks import Products, pays_as_blocks, usual_products, usual_tiling
from .tiling import MOST_WHOLE_TILES, Tiling, apart, as_images

Shape = Sequence[int]

RANK = 5  # of a packed weight
BATCHES = (1, 2, 4, 8)  # that weights are packed for, where the batch is symbolic


@dataclass(frozen=True)
class WinogradPlan:
    """A Winograd convolution F(m, r): its tiles, its tasks and its register tile."""

    tiling: Tiling
    pads: tuple[int, int]  # rows above the image, columns to its left
    apart: int  # how far the taps of the window are apart
    out: tuple[int, ...]  # [N, O, H, W] of the result
    products: Products
    tasks_are_blocks: bool  # a task is a block of tiles; else a step of channels of one
    transform_columns: bool  # a column of a tile at a time, through L1: registers hold no tile
    lanes: int  # of a vector
    row: int  # pixels of a row of the result that are stored at a time; 0: no vectors

    def __str__(self) -> str:
        t = self.tiling
        task = "block of tiles" if self.tasks_are_blocks else "step of channels"
        apart = f", taps {self.apart} apart" if self.apart > 1 else ""
        return f"Winograd F({t.m}, {t.window}){apart}, {t}, {self.products}, a task is a {task}"

    @property
    def m(self) -> int:
        """Rows and columns of outputs of a tile."""
        return self.tiling.m

    @property
    def window(self) -> int:
        """Rows and columns of the window."""
        return self.tiling.window

    @property
    def steps(self) -> int:
        """Register tiles of a block of tiles; the last one may repeat its last tile."""
        return -(-self.tiling.block // self.products.tiles)

    @property
    def out_blocks(self) -> int:
        """Blocks of 16 output channels."""
        return blocks_of(self.out[1])

    def faults(self, layer: Layer, cpu: Machine) -> Faults:
        """Of this plan for a layer."""
        t, p, images = self.tiling, self.products, as_images(self.out, self.apart)
        own = self.out, self.pads, self.apart, self.window
        told = layer.out, layer.attrs["padding"][:2], apart(layer.attrs), layer.kernel[2]
        yield from unlike("the windows", own, told)
        yield from unlike("a vector", self.lanes, min(BLOCK, cpu.lanes("float32")))
        yield from unlike("images", t.batch, images[0])
        if p != Products(1, 1, p.vector, p.vector) and not p.fits(cpu):
            yield f"{p} spills"
        yield from unlike("tiles", (t.down, t.along), (-(-images[2] // t.m), -(-images[3] // t.m)))
        yield from undivided("images", t.batch, t.images)
        yield from outside("rows of tiles", t.rows, 1, t.down)
        yield from outside("tiles of a block", t.block, 1, max(MOST_WHOLE_TILES, t.along))
        yield from undivided("blocks of channels", self.out_blocks, p.blocks)
        yield from undivided("a block", BLOCK, p.lanes)
        yield from undivided("lanes of a tile", p.lanes, p.vector)
        yield from undivided("a row of the result", self.out[3], self.row or 1)


def plan(
    image: Shape,
    kernel: Shape,
    attrs: Attrs,
    out: Shape,
    machine: Machine,
    name: str,
    packed_shape: Shape | None = None,
    ahead: bool = True,
    direct_word: float = 0,
    direct_bytes: int = 4,
    direct_time: float = 1.0,
) -> WinogradPlan | None:
    """The plan of the convolution `name`, or None where it is the direct one.

    `image`, `kernel` and `out` are [N, C, H, W], [O, I, H, W] and [N, O, H, W]. A weight that came
    packed ahead of time says by its `packed_shape` what it was packed for. One that is no constant
    (`ahead` is False) would be transformed at every call: that costs more than it saves. Of words
    of two levels, `direct_word` are the levels that the direct convolution multiplies meanwhile;
    `direct_bytes` are those of an element of its weight, `direct_time` what its products take
    beside those of floats.
    """
    if not ahead:
        return None
    batches = BATCHES if is_symbolic(out[0]) else (out[0],)
    direct = direct_word, direct_bytes, direct_time
    found = [costs(image, kernel, attrs, [n, *out[1:]], machine, *direct) for n in batches]
    usual = usual_form(found)
    m = choose(f"{name}.winograd", near(found[-1], usual), usual)
    if packed_shape is not None:
        m = form_of(packed_shape, kernel)
    if m == 0:
        return None
    channels = (image[1], out[1])
    images = as_images(out, apart(attrs))
    t = _decided(usual_tiling(images, m, kernel[2], channels, machine), name)
    ways = [True, False] if t.tasks > 1 else [False]
    as_blocks = choose(f"{name}.blocks_apart", ways, pays_as_blocks(t, channels, machine))
    lanes = min(16, machine.lanes("float32"))
    return WinogradPlan(
        tiling=t,
        pads=(attrs["padding"][0], attrs["padding"][1]),
        apart=apart(attrs),
        out=tuple(out),
        products=_products(t, channels, machine, as_blocks, name),
        tasks_are_blocks=as_blocks,
        transform_columns=t.size**2 > 2 * machine.vector_registers,
        lanes=lanes,
        row=stored_at_once(out[3], lanes),
    )


def form_of(packed: Shape, kernel: Shape) -> int:
    """The m of the form that a weight is packed for: [tile, tile, O/16, I, 16] for F(m, r), and 0
    of [O/16, I, H, W, 16] for the direct convolution and of [G/16, O/G, I, H, W, 16] for groups.
    """
    is_direct = len(packed) != RANK or tuple(packed[2:4]) == tuple(kernel[2:])
    return 0 if is_direct else packed[0] - kernel[2] + 1


def _decided(t: Tiling, name: str) -> Tiling:
    """A tiling with the blocks that are chosen for the convolution `name`."""
    most = max(t.rows, min(t.down, MOST_WHOLE_TILES // t.along))
    others = [replace(t, images=1, rows=rows) for rows in range(most, 0, -1)]
    others.sort(key=lambda o: o.tasks * o.block)
    usual = (t.images, t.rows)
    blocks = best([(other.images, other.rows) for other in others], usual, 2)
    images, rows = choose(f"{name}.block_of_{t.m}", blocks, usual)
    return replace(t, images=images, rows=rows)


def _products(
    t: Tiling, channels: Sequence[int], machine: Machine, as_blocks: bool, name: str
) -> Products:
    """The register tile."""
    found = usual_products(t, channels, machine, as_blocks)
    return decided(f"{name}.tile_of_{t.block}", found, lambda p: (p.tiles, p.blocks, p.lanes), 2)
