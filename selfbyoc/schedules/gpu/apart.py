"""Each stage as a kernel of its own: what serves where no block of threads can do all of them."""

from __future__ import annotations

from collections.abc import Sequence

from ...machine.gpu import Gpu
from ...tvm.types import Block, Loop, Schedule
from ..steps.blocks import Facts
from ..steps.reductions import epilogue_of
from .block import sum_one
from .threads import X, fused

THREADS = 256
MANY = 4096  # outputs from which one thread each keeps a GPU busy
LONG = 64  # terms from which the threads of a block share a sum


def each_apart(sch: Schedule, blocks: Sequence[Facts], gpu: Gpu) -> None:
    """Blocks one by one: elements, sums of one thread each, or sums that a block shares."""
    threads = min(THREADS, gpu.threads)
    names = {block.name for block in blocks}
    done: set[str] = set()
    for block in (b for b in blocks if b.reduction):
        is_long = block.steps >= LONG * block.size
        if len(block.stmt.writes) != 1:
            _elements(sch, block.block, threads)
        elif is_long and block.size < MANY:
            _share_sums(sch, block, threads)
        else:
            reader = epilogue_of(sch, block, names - done)
            done.add(reader.name)
            if reader.name in names:
                sch.set_scope(block.block, 0, "local")
            sum_one(sch, block.block, _elements(sch, reader.block, threads))
    for block in blocks:
        if not block.reduction and block.name not in done:
            _elements(sch, block.block, threads)


def _elements(sch: Schedule, block: Block, threads: int) -> Loop:
    """One element for each thread, neighbours for neighbours -> the loop over threads."""
    whole, _ = _outputs(sch, Facts(sch, block))
    outer, inner = sch.split(whole, [None, threads])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, X)
    return inner


def _share_sums(sch: Schedule, block: Facts, threads: int) -> None:
    """One output for each block, whose threads sum what they found among themselves."""
    whole, terms = _outputs(sch, block)
    _, term = sch.split(fused(sch, terms), [None, threads])
    sch.bind(whole, "blockIdx.x")
    sch.bind(term, X)


def _outputs(sch: Schedule, block: Facts) -> tuple[Loop, list[Loop]]:
    """The loop over all elements of the result, and those over terms."""
    loops = list(sch.get_loops(block.block))
    spatial = [loops[a.position] for a in block.spatial]
    terms = [loops[a.position] for a in block.reduction]
    if not spatial:
        return sch.add_unit_loop(terms[0] if terms else block.block), terms
    sch.reorder(*spatial, *terms)
    return fused(sch, spatial), terms
