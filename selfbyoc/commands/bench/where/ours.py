"""Our build, kernel by kernel: the calls that TVM's executor makes, made one by one, in order, on
the memory that the executor gave them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from ....runtime.executors.generation import executor
from ....runtime.generation import runtime
from ....runtime.kernel_call import KernelCall
from ..contenders.contender import Inputs
from ..contenders.tvm_builds import names, our_library
from ..setting import Setting
from .records import TVM, Profile, Step
from .sums import sums_of
from .timing import fastest

Array = tuple[int, int]  # address, bytes


def profiled(path: str, inputs: Inputs, setting: Setting, seconds: float) -> Profile:
    """A step for each kernel. A kernel's time is that within its call: an empty function, called
    alike, is taken off.
    """
    library = our_library(path, setting)
    tensors = [executor.to_tensor(array) for array in inputs.values()]
    calls = runtime.kernel_calls(library.native, names(library), tensors)
    matched = library.report.matched if library.report else ()
    composites = {record.symbol: record.composite for record in matched}
    times, count = _times(calls, seconds)
    writers: dict[int, int] = {}
    steps = []
    for number, (call, milliseconds) in enumerate(zip(calls, times, strict=True)):
        call.run()
        step = _step(call, composites, milliseconds, writers)
        writers.update((address, number) for address, _ in map(_place, call.results))
        steps.append(step)
    return Profile(tuple(steps), count)


def _step(
    call: KernelCall,
    composites: dict[str, str],
    milliseconds: float,
    writers: dict[int, int],
) -> Step:
    """After its call: its results are there."""
    arrays, kept = dict(map(_place, call.arguments)), dict(map(_place, call.weights))
    results = [executor.view_of(t) for t in call.results]
    given = set(arrays) - {a for a, _ in map(_place, call.results)}
    return Step(
        call.name,
        composites.get(call.name, TVM),
        milliseconds,
        values=tuple(sums_of(array) for array in results if array.dtype.kind in "fiub"),
        reads=tuple(sorted({writers[a] for a in given if a in writers})),
        weights=sum(kept.values()),
        moved=sum(size for a, size in arrays.items() if a not in kept),
        levels=any(executor.view_of(t).dtype in (np.int8, np.uint8) for t in call.arguments),
    )


def _place(tensor: object) -> Array:
    array = executor.view_of(tensor)
    return array.ctypes.data, array.nbytes


def _times(calls: Sequence[KernelCall], seconds: float) -> tuple[list[float], int]:
    """Milliseconds of each, from all calls of the model within so many seconds."""
    kernels = [call.run for call in calls]
    rows, empty = _rows(kernels, seconds), _rows([call.call_nothing for call in calls], 0.1)
    costs = fastest(empty)
    return [max(0.0, t - c) for t, c in zip(fastest(rows), costs, strict=True)], len(rows)


def _rows(runs: Sequence[Callable[[], object]], seconds: float) -> list[list[float]]:
    clock, found = time.perf_counter, list[list[float]]()
    end = clock() + seconds
    while clock() < end or len(found) < 3:
        row = []
        for run in runs:
            start = clock()
            run()
            row.append(1e3 * (clock() - start))
        found.append(row)
    return found
