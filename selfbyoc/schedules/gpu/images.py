"""Two convolutions and what is elementwise around them as one kernel: a thread block computes a
tile of the last image, and before it the part of the image between that the tile's windows cover.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...machine.gpu import Gpu
from ...tvm import Analyzer, region_buffer, tvm
from ...tvm.types import Loop, Schedule
from ..steps.blocks import Facts
from ..steps.indices import uses
from .banks import lay_out
from .chain import NoChain
from .plan import BlockPlan
from .threads import X, Y, fused

PIXELS = ((16, 16), (8, 16), (8, 8), (4, 8), (4, 4), (2, 4), (1, 4), (1, 1))
FEW_BLOCKS = 48  # as in plan.py
GROUPS, LANES = 4, 64  # lanes take pixels, groups channels: those of a warp share its weights
SUMS = 32  # of a thread: with less than half of its registers nothing spills
BYTES = 4  # of an element: at most
WEIGHTS = 8 << 10  # bytes of them that are in shared memory at once


@dataclass(frozen=True)
class Images:
    """The stages: sums, what is made of them in between, sums again, and the result."""

    first: Facts
    between: Facts
    second: Facts
    result: Facts
    again: Sequence[Facts]  # computed again by each reader: the first image's padding, and the like


@dataclass(frozen=True)
class Share:
    """What each thread computes at once: so many neighbours down a column, in so many channels."""

    down: int
    channels: int


@dataclass(frozen=True)
class ImagePlan:
    """A tile of the last image for each thread block."""

    height: int
    width: int
    first: Share
    second: Share
    shared_bytes: int

    def __str__(self) -> str:
        return (
            f"one kernel, thread blocks of {self.height} x {self.width} pixels, {GROUPS} x {LANES} "
            f"threads, {math.ceil(self.shared_bytes / 1024)} KB of shared memory; "
            f"{self.first.down} x {self.first.channels} and {self.second.down} x "
            f"{self.second.channels} sums a thread"
        )


def images_of(blocks: Sequence[Facts]) -> Images:
    """Blocks in program order as two convolutions. Raises NoChain."""
    sums = [n for n, block in enumerate(blocks) if block.reduction]
    if len(sums) != 2 or sums[1] - sums[0] < 2:
        raise NoChain("it is no chain of two convolutions")
    first, second, result = blocks[sums[0]], blocks[sums[1]], blocks[-1]
    if any(len(block.spatial) != 4 or len(block.reduction) != 3 for block in (first, second)):
        raise NoChain("its sums are not of images")
    if result.shape != second.shape:
        raise NoChain(f"{result.name} is of another shape than {second.name}")
    between = blocks[sums[1] - 1]
    kept = {first.name, between.name, second.name, result.name}
    again = [block for block in blocks if block.name not in kept]
    if any(block.is_costly for block in again if _feeds(block, first)):
        raise NoChain("what is before its first sums costs too much to compute for each of them")
    return Images(first, between, second, result, again)


def _feeds(block: Facts, reader: Facts) -> bool:
    return reader.name in [each.name for each in block.consumers]


def image_plan(images: Images, gpu: Gpu) -> ImagePlan:
    """The largest tile that fits and leaves enough of them. Raises NoChain where none fits."""
    plans = [p for p in _candidates(images) if p.shared_bytes <= gpu.shared_bytes]
    if not plans or gpu.threads < GROUPS * LANES:
        raise NoChain("no tile of its images fits a thread block")
    # Idle threads are worse than idle multiprocessors: the halo is computed by each block.
    full = [plan for plan in plans if plan.height * plan.width >= LANES // 2] or plans[:1]
    many = [plan for plan in full if _blocks(images, plan) >= FEW_BLOCKS]
    return (many or full[-1:])[0]


def _blocks(images: Images, plan: ImagePlan) -> int:
    n, _, rows, columns = images.result.shape
    return n * math.ceil(rows / plan.height) * math.ceil(columns / plan.width)


def _candidates(images: Images) -> Iterator[ImagePlan]:
    """Plans, larger tiles first."""
    _, channels, rows, columns = images.result.shape
    for high, wide in PIXELS:
        height, width = min(high, rows), min(wide, columns)
        box = _box(images.second, images.between, (1, channels, height, width))
        weights = max(_weights(block) for block in (images.first, images.second))
        yield ImagePlan(
            height,
            width,
            # At a border TVM counts the registers of a column from the first pixel inside, and what
            # is counted is no register.
            _share(images.first.shape[1], box[-2], box[-1], (1,)),
            _share(channels, height, width, range(1, 9)),
            math.prod(box) * BYTES + weights,
        )


def _box(reader: Facts, made: Facts, tile: Sequence[int]) -> list[int]:
    """What part of a stage a tile of its reader takes, by dimension."""
    buffer = region_buffer(made.stmt.writes[0])
    (read,) = [r for r in reader.stmt.reads if region_buffer(r).same_as(buffer)]
    ana = Analyzer()
    for axis, extent in zip(reader.spatial, tile, strict=True):
        ana.bind(axis.var, tvm.ir.Range(0, extent))
    for axis in reader.reduction:
        ana.bind(axis.var, tvm.ir.Range(0, axis.extent))
    bounds = [ana.const_int_bound(dim.min) for dim in read.region]
    return [int(bound.max_value - bound.min_value) + 1 for bound in bounds]


def _share(channels: int, height: int, width: int, downs: Sequence[int]) -> Share:
    """As few turns of all threads as can be, then as square as can be: both operands serve."""

    def cost(share: tuple[int, int]) -> tuple[int, int]:
        down, across = share
        turns = math.ceil(math.ceil(height / down) * width / LANES)
        turns *= math.ceil(channels / (across * GROUPS))
        return turns * down * across, turns * (down + across)

    sizes = [p for p in itertools.product(downs, (1, 2, 4, 8, 16)) if p[0] * p[1] <= SUMS]
    return Share(*min(sizes, key=cost))


def _weights(block: Facts) -> int:
    """Bytes of what is fetched at once."""
    _, high, wide = (axis.extent for axis in block.reduction)
    return block.shape[1] * _terms(block) * high * wide * BYTES


def _terms(block: Facts) -> int:
    """Input channels whose weights are fetched at once: a divisor, as the last are no fewer."""
    terms, high, wide = (axis.extent for axis in block.reduction)
    each = block.shape[1] * high * wide * BYTES
    return max(n for n in range(1, terms + 1) if terms % n == 0 and (n == 1 or n * each <= WEIGHTS))


def melt_images(sch: Schedule, images: Images, plan: ImagePlan, gpu: Gpu) -> None:
    """All stages under one loop over tiles."""
    # 1. The first image is read where it is: neighbours by neighbours, and again from the cache.
    for block in images.again:
        sch.compute_inline(block.block)
    # 2. Tiles of the result; the image between lies in shared memory, with what windows need of it.
    result = images.result.block
    if images.result.reduction:
        result = sch.cache_write(result, 0, "local")
    n, channels, y, x = sch.get_loops(result)[:4]
    tile_y, y = sch.split(y, [None, plan.height])
    tile_x, x = sch.split(x, [None, plan.width])
    sch.reorder(n, tile_y, tile_x, channels, y, x)
    at = fused(sch, [n, tile_y, tile_x])
    sch.bind(at, "blockIdx.x")
    sch.compute_at(images.second.block, at, preserve_unit_loops=True)
    sch.set_scope(images.between.block, 0, "shared")
    sch.compute_at(images.between.block, at, preserve_unit_loops=True)
    # 3. Both by all threads, sums in registers.
    _share_out(sch, images.second, [channels, y, x], plan.second)
    loops = list(sch.get_loops(images.between.block))[1:]
    rest, (y, x) = loops[2:-2], loops[-2:]
    sch.reorder(*rest, loops[1], y, x)
    _share_out(sch, images.first, [loops[1], y, x], plan.first)
    # 4. Lines of the image between as far apart as the banks of a warp's pixels want it.
    threads = BlockPlan(1, GROUPS, LANES, {}, shared_bytes=plan.shared_bytes)
    lay_out(sch, threads, {}, gpu.shared_bytes)


def _share_out(sch: Schedule, sums: Facts, loops: Sequence[Loop], share: Share) -> None:
    """The elements of a stage to threads, and the sums that it reads under each."""
    channels, y, x = loops
    more, group, channels = sch.split(channels, [None, GROUPS, share.channels])
    y, down = sch.split(y, [None, share.down])
    sch.reorder(more, group, y, x, channels, down)
    turn, lane = sch.split(sch.fuse(y, x), [None, LANES])
    sch.reorder(more, turn, group, lane, channels, down)
    sch.bind(group, Y)
    sch.bind(lane, X)
    if not sums.in_scope("local"):
        sch.set_scope(sums.block, 0, "local")
    sch.compute_at(sums.block, lane, preserve_unit_loops=True)
    own = list(sch.get_loops(sums.block))[-7:]
    terms, high, wide = own[4:]
    chunk, terms = sch.split(terms, [None, _terms(sums)])
    sch.reorder(chunk, terms, high, wide, *own[:4])
    for loop in (*own[:4], channels, down):
        sch.unroll(loop)  # only so sums stay in registers
    _fetch(sch, sums, chunk)


def _fetch(sch: Schedule, sums: Facts, chunk: Loop) -> None:
    """The weights of some input channels in shared memory."""
    now = Facts(sch, sums.block)
    *_, weight = [
        n
        for n, region in enumerate(now.stmt.reads)
        if not any(uses(dim.min, axis) for dim in region.region for axis in now.spatial[2:])
    ]
    fetch = sch.cache_read(sums.block, weight, "shared")
    sch.compute_at(fetch, chunk)
    loops = list(sch.get_loops(fetch))
    inside = loops[[sch.get(loop).same_as(sch.get(chunk)) for loop in loops].index(True) + 1 :]
    _, group, lane = sch.split(fused(sch, inside), [None, GROUPS, LANES])
    sch.bind(group, Y)
    sch.bind(lane, X)
