"""The schedule of padded rows of pixels (lanes.py), which every form with a window may read."""

from __future__ import annotations

from ....tvm.types import Loop, Schedule
from ...steps.blocks import Facts
from ...steps.elementwise import converts_bytes
from ...steps.images import Work
from ...steps.loops import PARTITION
from ...steps.parallel import parallel_over
from ...steps.tiles import BLOCK
from .lanes import Lanes


def pad_rows(work: Work, pad: Facts, p: Lanes, vector: int, at: Loop | None = None) -> None:
    """A padded copy in parallel: each core takes, by and large, what its windows read; or under the
    task that reads it.
    """
    sch = work.sch
    work.done.add(pad.name)
    if at is not None:
        sch.compute_at(pad.block, at, preserve_unit_loops=True)
        copy_rows(sch, pad, p, vector)
        return
    n, c = list(sch.get_loops(pad.block))[:2]
    phase, rows = copy_rows(sch, pad, p, vector)
    outer = [n, c]
    if all(len(reader.spatial) == 6 for reader in pad.consumers):  # tasks are blocks of rows
        group, row = sch.split(rows, [None, p.rows])
        sch.reorder(n, group, c, phase, row)
        outer = [n, group, c]
    parallel_over(sch, outer, pad.size / 4)


def copy_rows(sch: Schedule, pad: Facts, p: Lanes, vector: int) -> tuple[Loop, Loop]:
    """A copy row by row, horizontal phases innermost: contiguous reads; -> phase and row loops.

    64x56x56 at stride 2, one core, LLVM 10: 52 us; with the phases outermost 83. LLVM 22: 16 both.
    """
    *_, phase, lane = sch.get_loops(pad.block)
    lanes = int(sch.get(lane).extent)
    if lanes > p.length:  # rows of bytes, as they lie in the image (columns.py)
        row, column = sch.split(lane, [None, p.pitch * p.phases[1]])
        sch.unroll(phase)
        sch.annotate(column, PARTITION, 1)
        return phase, row
    row, column = sch.split(lane, [None, p.pitch])
    vertical, horizontal = sch.split(phase, [None, p.phases[1]])
    sch.reorder(vertical, row, column, horizontal)
    sch.unroll(vertical)
    sch.unroll(horizontal)
    if p.phases[1] > 1 or p.pitch > 4 * vector:
        if p.phases[1] == 1 and (vector < BLOCK or converts_bytes(pad)):
            # LLVM masks vectors of AVX-512 alone, and no bytes that it converts: the latter of
            # 32x112x112, 3x3, 193 us, so 119; with AVX2 96x92x92 401 and 209 (Zen 4, Nov 2026).
            sch.annotate(column, PARTITION, 1)
        elif lanes % p.pitch:  # of a channel alone, less than its last row: what none reads
            sch.annotate(row, PARTITION, 1)
        return vertical, row
    sch.reorder(horizontal, column)
    if p.is_whole:
        sch.vectorize(column)  # no padding between rows: nothing to test for each element
    else:
        # The tests are constants then; LLVM 10 makes 6 us of 64x28x28, and 14 of a loop.
        sch.unroll(column)
    return vertical, row
