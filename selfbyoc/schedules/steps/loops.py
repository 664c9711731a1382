"""Reusable parts of schedules: each takes a schedule and does one thing to it.

Order matters once: decomposing a reduction comes last, after every parallel and compute_at around
it (TensorIR finds no compact dataflow after one). Such steps return a `Finish`, to be called when
all else is done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...tir.prefetch import AHEAD, PIECE
from ...tir.prefetch_early import EARLY
from ...tir.transposed_tiles import TRANSPOSE
from ...tvm import region_buffer, walk
from ...tvm.types import Block, Buffer, Loop, Schedule
from .blocks import Facts, divisor, facts
from .parallel import parallel_over

Finish = Callable[[], None]
PARTITION = "pragma_loop_partition_hint"  # TVM's: the last iterations are a loop of their own
MOST_READS = 1000  # twenty times those of gelu; the power of lrn has 2000, a minute's compiling
# A GRU's candidate reads a sigmoid 50 times in its tanh: 25,000 nodes, half a second of compiling
# for each step of the sequence.
MOST_NODES = 8000
CHUNK_STEPS = 16  # steps of a sum between two groups of prefetches


def inline_injective(sch: Schedule, stay: Collection[str] = ()) -> None:
    """Inline what costs nothing to compute again, or has one reader that is elementwise itself.

    A padded or rearranged copy in front of a reduction stays: it would be made for every product.
    So does what an expression reads very often: TVM's passes visit a copy of it for every time.
    """
    for block in facts(sch):
        if block.reduction or block.is_output or block.name in stay:
            continue
        consumers = block.consumers
        elementwise = all(not c.reduction for c in consumers)
        free = not block.axes or _is_constant(block)
        cheap = elementwise and _cheap_to_inline(block, consumers)
        if free or (cheap and not any(_grows_too_far(c, block) for c in consumers)):
            sch.compute_inline(block.block)


def _is_constant(block: Facts) -> bool:
    return not block.stmt.reads


def _grows_too_far(consumer: Facts, block: Facts) -> bool:
    """Whether an expression that names the result of a block for so many times would be too long
    with the block's own in their place: log(1 + exp(x)) has 800 loads, its tanh 20000.
    """
    times = sum(load.same_as(region_buffer(block.stmt.writes[0])) for load in _loads(consumer))
    is_long = times > 1 and times * _nodes(block) > MOST_NODES
    return is_long or times * max(1, len(_loads(block))) > MOST_READS


def _nodes(block: Facts) -> int:
    """Nodes of the expression that a block computes."""
    found: list[Any] = []
    walk(block.sch.get(block.block).body, found.append)
    return len(found)


def _loads(block: Facts) -> list[Buffer]:
    """The buffers that an expression reads, one for each time."""
    found: list[Any] = []

    # A load's class is named differently by the generations.
    walk(block.sch.get(block.block).body, found.append, "BufferLoad", "TensorLoad")
    return [region_buffer(node) for node in found]


def _cheap_to_inline(block: Facts, consumers: Sequence[Facts]) -> bool:
    """One reader computes each element once; several, or a broadcast, compute it again."""
    if block.is_costly:
        return len(consumers) == 1 and consumers[0].size <= block.size
    return True


def vectorize(sch: Schedule, loop: Loop, lanes: int) -> None:
    """Vectorise a loop; one of several vectors becomes an unrolled loop of vectors."""
    extent = int(sch.get(loop).extent)
    if extent > lanes and extent % lanes == 0:
        outer, loop = sch.split(loop, [None, lanes])
        sch.unroll(outer)
    sch.vectorize(loop)


def vectorize_row(sch: Schedule, loop: Loop, width: int, lanes: int) -> None:
    """A row, `width` elements at a time, in vectors; of 0 none are made."""
    if width:
        vectorize(sch, sch.split(loop, [None, width])[1], lanes)


def transpose(sch: Schedule, down: Loop, across: Loop, lanes: int) -> Loop:
    """Transpose in registers a copy that reads one of the two innermost loops together and writes
    the other one so (tir/transposed_tiles.py): `across` in tiles, as wide as whole rows of them
    allow -> the loop over tiles.

    `down` has a power of two of iterations, at most a vector's lanes.
    """
    extent = int(sch.get(across).extent)
    width = 1 << (min(extent, lanes).bit_length() - 1)
    tile, inner = sch.split(across, [None, width])
    sch.reorder(tile, down, inner)
    sch.annotate(tile, TRANSPOSE, extent)
    return tile


def prefetch_next(
    sch: Schedule, piece: Loop, at: Loop, weight: str, to: Sequence[int] | None = None
) -> None:
    """Each run of the loop `piece` reads a piece of a packed weight (a parameter, by name); the
    runs of the loop `at`, inside of it, prefetch the lines of the next piece into L2.

    The piece, what is after it and the lines of a run follow from the loops (tir/prefetch.py):
    call it when neither loop will be split or fused any more. The runs of `at` should be as many as
    a piece has lines, or fewer; a piece should be small enough that two of them are in L2. Where
    another loop reads the next piece, `to` says how far each of its indices is away.
    """
    sch.annotate(piece, PIECE, weight)
    sch.annotate(at, AHEAD, json.dumps([weight, to]))


def prefetch_while_summing(sch: Schedule, piece: Loop, k: Loop, weight: str) -> Loop:
    """`prefetch_next` by the steps of a sum over `k`; -> the loop over k to start the sums before.

    In chunks: LLVM takes a prefetch for a read of the sums too, wherever these are not on the stack
    (1 KB at most, and not of scope "local" on 0.27), and keeps them in registers between two only.
    256x14x14 by Winograd, 9.4 MB of weights in memory: 415 us without, 260 by chunks of 16, 262 of
    8, 268 of 32, 350 of 64; with the weights in L3 223, 225 by chunks, 235 to 420 by every step.
    """
    chunk = divisor(int(sch.get(k).extent), CHUNK_STEPS)
    if chunk < CHUNK_STEPS // 2:
        return k
    outer, _ = sch.split(k, [None, chunk])
    prefetch_next(sch, piece, outer, weight)
    return outer


def prefetch_residual(sch: Schedule, loop: Loop, block: Facts) -> None:
    """Each run of a loop over tiles begins by prefetching what `block`, at its end, reads beside
    the sums, what these read, and factors for each channel: a residual.

    Call it when the loop will not be split or fused any more (tir/prefetch_early.py).
    """
    read = [region_buffer(region) for region in block.stmt.reads]
    # The last of a weight of words are sums that a zero point is multiplied by.
    others = [region for p in block.producers for region in (*p.stmt.writes, *p.stmt.reads)]
    known = [region_buffer(region) for region in others]
    names = [
        str(b.name)
        for b in read
        if len(b.shape) > 1 and not any(b.same_as(other) for other in known)
    ]
    if names:
        sch.annotate(loop, EARLY, " ".join(names))


def prefetch_image(sch: Schedule, loop: Loop, block: Facts) -> None:
    """Each run of a loop begins by prefetching what `block` writes at its end: lines that the core
    would wait for one by one as it stores. Call it as `prefetch_residual`.
    """
    sch.annotate(loop, EARLY, str(region_buffer(block.stmt.writes[0]).name))


def vectorize_copy(sch: Schedule, block: Facts, lanes: int) -> None:
    """An elementwise or copying block, in vectors of so many lanes."""
    loops = list(sch.get_loops(block.block))
    if not loops or block.size < 2:
        return
    extent = block.spatial[-1].extent
    *before, last = loops
    width = divisor(extent, 4 * lanes)
    if width >= 2:
        outer, inner = sch.split(last, [None, width])
        vectorize(sch, inner, lanes)
        before.append(outer)
    else:
        before.append(last)
    parallel_over(sch, before, block.size)


def start_sums(sch: Schedule, block: Block, at: Loop, unrolled: int) -> None:
    """Set the accumulators to their start before the reduction's loop `at`, in the same vectors;
    `unrolled` loops are around a vector.
    """
    *outer, lane = sch.get_loops(sch.decompose_reduction(block, at))
    if int(sch.get(lane).extent) == 1:
        return
    sch.vectorize(lane)
    for loop in outer[len(outer) - unrolled :]:
        sch.unroll(loop)
