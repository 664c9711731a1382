"""What memory gives to who only reads: the roof of a token, which reads every weight once."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ....tvm import Schedule, get_block, get_func, te, tensor, tvm
from ....tvm.build import build_module
from ....tvm.config import kernel_config
from ....tvm.types import Target

_BYTES, _LANES = 1 << 29, 64  # far more than caches hold; sums side by side


def reader(target: Target, threads: int) -> Callable[[], float]:
    """What sums an array, on so many threads, and says how many GB/s that were."""
    rows = _BYTES // 4 // _LANES // threads
    a = te.placeholder((threads, rows, _LANES), name="a")
    k = te.reduce_axis((0, rows), name="k")
    c = te.compute((threads, _LANES), lambda t, i: te.sum(a[t, k, i], k), name="c")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([a, c])}))
    block = get_block(sch, "c")
    thread, lane, step = sch.get_loops(block)
    sch.reorder(thread, step, lane)
    sch.parallel(thread)
    sch.vectorize(lane)
    sch.decompose_reduction(block, step)
    func = sch.mod["main"].with_attr("global_symbol", "reading")
    with tvm.transform.PassContext(opt_level=3, config=kernel_config(target)):
        function = get_func(build_module(tvm.IRModule({"reading": func}), target), "reading")
    arrays = (
        tensor(np.ones((threads, rows, _LANES), "float32")),
        tensor(np.zeros((threads, _LANES), "float32")),
    )

    def read() -> float:
        began = time.perf_counter()
        function(*arrays)
        return 1e-9 * _BYTES / (time.perf_counter() - began)

    return read
