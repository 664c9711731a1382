"""Register tiles of 1x1 convolutions over flat pixels (pointwise.py), written as the image."""

from __future__ import annotations

import math
from typing import Any

from ...._tvm import region_buffer
from ....language.decisions import choose
from ....machine import Machine
from ...steps.blocks import Facts, facts, same_elements
from ...steps.candidates import best
from ...steps.loops import ask_early, decompose, parallel_over, vectorize
from .direct_tiles import Work, image_of, images, is_copy, register_shape


def stays(sch: Any) -> set[str]:
    """What is not inlined: parts of the sums, and the last of the elementwise ops behind them."""
    names = set()
    for block in facts(sch):
        if block.name.endswith("_product"):
            ends = _ends(block)
            sums = [block] if ends is None else [ends, *ends.producers]
            names |= {b.name for b in (*sums, _image(block))}
    return names


def _ends(block: Facts) -> Facts | None:
    return next((c for c in block.consumers if c.name.endswith("_ends")), None)


def _image(block: Facts) -> Facts:
    """The image that the sums are written as: behind the ops that nothing else reads."""
    (image,) = (_ends(block) or block).consumers
    while len(image.consumers) == 1:
        (after,) = image.consumers
        elementwise = same_elements(image, after) and not (after.reduction or is_copy(after.name))
        if not elementwise or len(images(after)) > 1:
            break
        image = after
    return image


def tile_pixels(work: Work, block: Facts) -> None:
    """for tile, block of channels: acc = 0; for k: acc += ...; image = epilogue(acc)."""
    sch, lanes = work.sch, work.cpu.lanes(block.dtype)
    ends = _ends(block)
    image = image_of(ends or block)
    assert image is not None, f"{block.name} has no image of its own"
    _flatten(work, image, ends or block)
    image = Facts(sch, image.block)
    _, _, rows, _, width = block.shape
    height, vectors = register_shape(block, rows, width, work.cpu)
    n, o, p = sch.get_loops(image.block)
    b, r = sch.split(o, [None, rows])
    ro, ri = sch.split(r, [None, height])
    step = _step(block, image.shape[2] % lanes != 0, work.cpu)
    group, t, part, v, lane = sch.split(p, [None, step, width // (vectors * lanes), vectors, lanes])
    by_channels = choose(f"{block.name}.by_channels", (False, True), _weights_are_larger(block))
    outer = [n, b, group] if by_channels else [n, group, b]
    sch.reorder(*outer, t, part, ro, ri, v, lane)
    if step > 1:
        # All but the last tile without a test: one on the lanes makes scalar code.
        sch.annotate(t, "pragma_loop_partition_hint", 1)
    _in_registers(sch, [ri, v], lane)
    # A residual in memory, 64x56x56 to 256: 634 -> 283 us; all in the last cache 243 -> 224.
    ask_early(sch, ro, image)
    for stage in (ends, block):
        if stage is not None:
            _sums(work, stage, ro)
    parallel_over(sch, outer, block.steps / lanes)
    work.done |= {block.name, image.name}


def _flatten(work: Work, image: Facts, sums: Facts) -> None:
    """The image's pixels as one axis, and its reads of the sums simplified (0.27 does not)."""
    width = image.shape[3]
    work.sch.transform_block_layout(image.block, lambda n, o, y, x: (n, o, y * width + x))
    written = region_buffer(sums.stmt.writes[0])
    reads = [region_buffer(region) for region in work.sch.get(image.block).reads]
    at = next(i for i, buffer in enumerate(reads) if buffer.same_as(written))
    work.sch.transform_layout(image.block, ("read", at), lambda *index: index)


def _step(block: Facts, cuts_vector: bool, cpu: Machine) -> int:
    """Tiles of a task: one, but where a vector sticks out of the image as many as keep the cores
    even.
    """
    if not cuts_vector:
        return 1
    batch, blocks, _, tiles, _ = block.shape

    def longest(groups: int) -> int:
        return -(-batch * blocks * groups // cpu.cores) * -(-tiles // groups)

    usual = -(-tiles // min(range(1, min(tiles, 8) + 1), key=longest))
    steps = sorted(range(2, min(tiles, 8) + 1), key=lambda step: (-(-tiles // step) * step, -step))
    return choose(f"{block.name}.tiles_of_a_task", best(steps, usual), usual)


def _weights_are_larger(block: Facts) -> bool:
    """Whether the weights should be read once, and the image again for each block of channels."""
    batch, blocks, rows, tiles, lanes = block.shape
    return blocks * rows > math.prod((batch, tiles, lanes))


def _in_registers(sch: Any, unrolled: list[Any], lane: Any) -> None:
    for loop in unrolled:
        sch.unroll(loop)
    sch.vectorize(lane)


def _sums(work: Work, stage: Facts, loop: Any) -> None:
    """A stage of the sums in registers, under the loop over register tiles."""
    sch, lanes = work.sch, work.cpu.lanes(stage.dtype)
    sch.compute_at(stage.block, loop, preserve_unit_loops=True)
    sch.set_scope(stage.block, 0, "local")
    loops = list(sch.get_loops(stage.block))[-len(stage.axes) :]
    r, t, lane = (loops[a.position] for a in stage.spatial[2:])
    if stage.reduction:
        k = loops[stage.reduction[0].position]
        sch.reorder(k, t, r, lane)
        work.finish.append(lambda: decompose(sch, stage.block, k, True))
    sch.unroll(r)
    vectorize(sch, lane, lanes)
    work.done.add(stage.name)
