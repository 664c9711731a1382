"""Parallel regions: which work is worth one."""

from __future__ import annotations

from collections.abc import Sequence

from ...language.decisions import for_every_size
from ...tvm.types import Loop, Schedule

# A region costs 1-2 us to launch. The least work that pays for one, by kind:
LEAST_STEPS = 8192  # vector steps of a loop nest, some 3 us
LEAST_PRODUCTS = 1 << 17  # multiplications of an attention, with a softmax between them
LEAST_FEW_PRODUCTS = 1 << 16  # the same of few queries, which read more than they multiply
LEAST_NORMALISED = 4096  # elements of rows with several passes over each


def is_worth_it(work: float, least: float) -> bool:
    """Whether this work is worth a region; of a symbolic size it is always taken for that."""
    return work >= least or for_every_size()


def parallel_over(sch: Schedule, loops: Sequence[Loop], steps: float = LEAST_STEPS) -> Loop:
    """Fuse loops from the outside in and run them in parallel, if their `steps` in all are worth a
    region.
    """
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    if is_worth_it(steps, LEAST_STEPS):
        sch.parallel(fused)
    return fused
