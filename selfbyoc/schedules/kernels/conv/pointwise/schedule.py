"""The schedule of a 1x1 convolution over flat pixels: sums in registers, written as the image."""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.as_written import AS_WRITTEN
from .....tvm import region_buffer
from .....tvm.types import Loop, Schedule
from ....steps.blocks import Facts, same_elements
from ....steps.images import Work, images
from ....steps.loops import PARTITION, prefetch_residual, vectorize
from ....steps.parallel import parallel_over
from ....steps.registers import start_parts, unroll_tile
from ..padding import pad_rows
from ..widened import widen
from .compute import PointwiseStages
from .plan import APART, IN_TASK, PointwisePlan

UNROLL = "pragma_auto_unroll_max_step"  # for loops of at most so many stores
EXPLICIT = "pragma_unroll_explicit"  # by TVM, not by LLVM


def image_written(work: Work, sums: Facts) -> Facts:
    """The image that the sums are written as: after the ops that nothing else reads."""
    (image,) = sums.consumers
    while len(image.consumers) == 1:
        (after,) = image.consumers
        elementwise = same_elements(image, after) and not after.reduction
        if not elementwise or after.name in work.copies or len(images(after)) > 1:
            break
        image = after
    return image


def stays(work: Work, stages: PointwiseStages, plan: PointwisePlan) -> set[str]:
    """What is not inlined: the sums, what they read, and the image that they are written as."""
    sums = Facts(work.sch, stages.sums)
    laid_out = [Facts(work.sch, b) for b in (stages.panels, stages.pixels) if b is not None]
    laid_out += [Facts(work.sch, b) for b in (stages.before, stages.parts) if b is not None]
    return {b.name for b in (sums, image_written(work, sums), *laid_out)}


def schedule(work: Work, stages: PointwiseStages, plan: PointwisePlan) -> None:
    """for tile, block of channels: acc = 0; for k: acc += ...; image = epilogue(acc)."""
    sch, sums = work.sch, Facts(work.sch, stages.sums)
    steps = sums.steps + (0 if stages.parts is None else Facts(sch, stages.parts).steps)
    (image,) = sums.consumers
    before = None if stages.before is None else Facts(sch, stages.before)
    _flatten(sch, image, [sums, *([before] if before else [])])
    image = Facts(sch, image.block)
    # 1. Register tiles of the image, in its flat pixels.
    n, o, p = sch.get_loops(image.block)
    # Of fewer channels than a tile has rows a tile is as long: of one row TVM 0.27 loses the loop.
    # Else tiles are whole: to compute one that is cut TVM computes all rows of the block. 14x56x56
    # to 14, 3x3, by tiles of 3 rows of 15, one core of Zen 3: 1821 us, 167 so (Nov 2026).
    channels, tile = min(sums.shape[2], image.shape[1]), plan.tile.rows
    rows = channels if channels < tile else -(-channels // tile) * tile
    b, r = sch.split(o, [None, rows])
    ro, ri = sch.split(r, [None, min(plan.tile.rows, rows)])
    group, t, v, lane = sch.split(p, [None, plan.step, plan.tile.vectors, plan.vector])
    in_task = plan.panels == IN_TASK
    outer = [n, b, group] if plan.by_channels else [n, group] if in_task else [n, group, b]
    around = [*outer, t, *([b] if in_task else []), ro, ri]
    unroll_tile(sch, around, [v, lane], plan.vector)
    if plan.step > 1:
        # All but the last tile without a test: one on the lanes makes scalar code. Rows of it stay
        # a loop, or GoogLeNet builds in 52 s, not 29; rows of vectors do not (LLVM 10 would leave
        # them one: 4x512x14x14 5.1 ms, not 4.4).
        sch.annotate(t, PARTITION, 1)
        sch.annotate(ri, UNROLL, plan.tile.sums)
        sch.annotate(ri, EXPLICIT, 1)
    else:
        sch.unroll(ri)
    # 2. A residual in memory, 64x56x56 to 256: 634 -> 283 us; all in the last cache 243 -> 224.
    prefetch_residual(sch, ro, image)
    _sums(work, sums, ro, plan)
    if stages.floats is not None:
        widen(work, stages.floats, b if in_task else outer[-1], plan.vector)
    if before is not None:
        _before(work, before, stages, t if in_task else outer[-1], plan)
    # 3. A panel where it is read: by one task, or by several.
    if stages.panels is not None:
        _panels(work, Facts(sch, stages.panels), t if in_task else None, plan)
    parallel_over(sch, outer, steps / plan.vector)
    work.done |= {sums.name, image.name}
    if stages.copy is not None:
        assert plan.padded is not None, f"{plan} pads rows"
        pad_rows(work, Facts(sch, stages.copy), plan.padded, plan.vector)


def _flatten(sch: Schedule, image: Facts, sums: Sequence[Facts]) -> None:
    """The image's pixels as one axis, and its reads of the sums simplified (0.27 does not)."""
    _, _, height, width = image.shape
    # Of one row TVM writes `x % width`, and takes a tile to read all of the sums for it.
    rows = 0 if height == 1 else width
    sch.transform_block_layout(image.block, lambda n, o, y, x: (n, o, y * rows + x if rows else x))
    for block in sums:
        written = region_buffer(sch.get(block.block).writes[0])
        reads = [region_buffer(region) for region in sch.get(image.block).reads]
        at = next(i for i, buffer in enumerate(reads) if buffer.same_as(written))
        sch.transform_layout(image.block, ("read", at), lambda *index: index)


def _sums(work: Work, sums: Facts, loop: Loop, plan: PointwisePlan) -> None:
    """The sums in registers, under the loop over register tiles."""
    sch = work.sch
    sch.compute_at(sums.block, loop, preserve_unit_loops=True)
    work.done.add(sums.name)
    sch.set_scope(sums.block, 0, "local")
    sch.annotate(sums.block, AS_WRITTEN, 1)  # 4 x 3 sums and their operands are all registers
    loops = list(sch.get_loops(sums.block))[-len(sums.axes) :]
    r, t, lane = (loops[a.position] for a in sums.spatial[-3:])
    k, *taps = (loops[a.position] for a in sums.reduction)
    unroll_tile(sch, [k, *taps, t], [r, lane], plan.vector)
    for tap in plan.window.unrolled(*taps):
        sch.unroll(tap)
    work.finish += start_parts(sch, sums.block, [k])


def _before(
    work: Work, sums: Facts, stages: PointwiseStages, loop: Loop, plan: PointwisePlan
) -> None:
    """The sums of a task but those of the last input channels, in L2: channels in blocks, and in
    each all register tiles.
    """
    sch = work.sch
    sch.compute_at(sums.block, loop, preserve_unit_loops=True)
    b, r, t, lane, *part = list(sch.get_loops(sums.block))[-4 - len(sums.reduction) :]
    ro, ri = sch.split(r, [None, plan.tile.rows])
    around = (b, t) if plan.by_channels else (t, b)
    unroll_tile(sch, [*part, *around, ro], [ri, lane], plan.vector)
    work.finish += start_parts(sch, sums.block, part)
    work.done.add(sums.name)
    _sums(work, Facts(sch, stages.parts), ro, plan)
    if stages.floats_before is not None:
        widen(work, stages.floats_before, b, plan.vector)


def _panels(work: Work, panels: Facts, loop: Loop | None, plan: PointwisePlan) -> None:
    """Panels in vectors: the pixels of a tile channel by channel; or, before all tasks, all pixels
    of a channel as they lie.
    """
    sch = work.sch
    if loop is not None:
        sch.compute_at(panels.block, loop, preserve_unit_loops=True)
    n, t, c, ry, rx, lane = list(sch.get_loops(panels.block))[-6:]
    if loop is None:
        assert plan.panels == APART, f"{panels.name} is {plan.panels}"
        outer = [n, c]
        if not plan.by_channels:
            # A core packs the tiles that it reads. 256x28x28 to 64 on two cores of Zen 4: 160 us by
            # channels, 151 so; 290 and 216 where the cores share no cache (Nov 2026).
            group, t = sch.split(t, [None, plan.step])
            outer = [n, group, c]
        sch.reorder(*outer, t, lane)
    if plan.unit:
        several, lane = sch.split(lane, [None, plan.unit])
        # Not always all: a filter of a constant-Q transform has 256 taps.
        for each in (*plan.window.unrolled(ry, rx), several):
            sch.unroll(each)
    vectorize(sch, lane, plan.vector)
    if loop is None:
        if plan.tiles > 1 and plan.pixels % plan.lanes:
            sch.annotate(t, PARTITION, 1)
        parallel_over(sch, outer, panels.size)
    work.done.add(panels.name)
