"""Whether a kernel gives the same bits again: what reads foreign memory, or races, does not."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from .inputs import Array
from .run import OTHER_POISON, Runner

# Threads that race do so in some runs only. Small kernels get all runs, large ones one.
_RUNS, _SECONDS = 100, 0.1


def unsteady(runner: Runner, inputs: Sequence[Array], found: Sequence[Array]) -> str:
    """Run again on the same input with other bytes around it; where the bits differ, or ''."""
    started = time.monotonic()
    for _ in range(_RUNS):
        for n, (before, after) in enumerate(zip(found, runner(inputs, OTHER_POISON), strict=True)):
            if before.tobytes() != after.tobytes():
                return (
                    f"two runs on the same input differ in output {n}, first "
                    f"{_first(before, after)}: it reads memory that nobody wrote, or its threads "
                    f"race"
                )
        if time.monotonic() - started > _SECONDS:
            break
    return ""


def _first(before: Array, after: Array) -> str:
    """The first element of other bits."""
    bits = [np.ascontiguousarray(a).view("uint8").reshape(a.size, -1) for a in (before, after)]
    flat = int(np.flatnonzero((bits[0] != bits[1]).any(1))[0])
    index = [int(i) for i in np.unravel_index(flat, before.shape)]
    return f"{index} ({before.flat[flat]}, then {after.flat[flat]})"
