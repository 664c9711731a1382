"""What memory gives at most, at a size: a triad on all threads, to compare copies with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...runtime.timing import latency
from ...tvm import Schedule, get_block, get_func, te, tensor, tvm
from ...tvm.alignment import any_alignment
from ...tvm.build import build_module
from ...tvm.config import kernel_config
from ...tvm.types import Target
from .allocations import threads_of

LARGEST = 1 << 28  # bytes: more is no other level of memory


class Bandwidth:
    """GB/s of a triad of about as many bytes as asked for, each measured once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._rates: dict[int, float] = {}

    def at(self, bytes_: int) -> float:
        """Of the next power of two: what lies in the same level of memory."""
        size = min(LARGEST, 1 << max(14, (bytes_ - 1).bit_length()))
        if size not in self._rates:
            run, moved = triad(size, threads_of(self._target), self._target)
            time = latency({"triad": run}, windows=9, budget=0.2)["triad"]
            self._rates[size] = 1e-6 * moved / time.milliseconds
        return self._rates[size]


def triad(total: int, threads: int, target: Target) -> tuple[Callable[[], object], int]:
    """c = a + 3 b in parallel on about `total` bytes; -> a call of it, and its bytes.

    The line that a store reads first is not counted.
    """
    count = max(1, total // 12 // (16 * threads)) * 16 * threads
    a, b = (te.placeholder((count,), name=name) for name in "ab")
    c = te.compute((count,), lambda i: a[i] + 3 * b[i], name="c")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([a, b, c])}))
    block = get_block(sch, "c")
    thread, _, lane = sch.split(sch.get_loops(block)[0], [threads, None, 16])
    sch.parallel(thread)
    sch.vectorize(lane)
    func = any_alignment(sch.mod["main"]).with_attr("global_symbol", "triad")
    with tvm.transform.PassContext(opt_level=3, config=kernel_config(target)):
        function = get_func(build_module(tvm.IRModule({"triad": func}), target), "triad")
    arrays = [tensor(np.ones(count, "float32")) for _ in range(3)]
    return lambda: function(*arrays), 12 * count
