"""What the machine can do at most: multiply-adds, bytes from each level of memory, and a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import host
from .._tvm import Schedule, build_module, get_block, get_func, te, tensor, tvm
from .._tvm_alignment import any_alignment
from .._tvm_config import kernel_config
from ..analysis.melting.peak import FmaPeak
from ..runtime.timing import latency
from .setting import Setting

LARGEST = 1 << 28  # bytes of an array: more is no other level of memory


@dataclass(frozen=True)
class Roof:
    """On so many threads: GFLOP/s of fp32 multiply-adds in registers, GB/s of a triad whose data
    lie in each level, and microseconds of a parallel kernel that does nothing.
    """

    threads: int
    gflops: float
    bandwidth: dict[str, float]
    launch: float
    sizes: dict[str, int]  # bytes that each cache holds for these threads


class Measurement:
    """Built first, timed later, when nobody else computes; by code for the setting's target."""

    def __init__(self, setting: Setting) -> None:
        target, threads = setting.tvm_target(), setting.threads
        self._threads = threads
        self._triads = {n: _triad(total, threads, target) for n, total in _levels(threads).items()}
        self._nothing, _ = _triad(0, threads, target)
        self._peak = FmaPeak(target, threads)

    def roof(self) -> Roof:
        """A few seconds."""
        rates = {}
        for level, (run, size) in self._triads.items():
            time = latency({"triad": run}, windows=9, budget=0.3)["triad"]
            rates[level] = 1e-6 * size / time.milliseconds
        launch = latency({"launch": self._nothing}, windows=15, budget=0.5)["launch"].milliseconds
        return Roof(
            self._threads,
            self._peak.measured().gflops,
            rates,
            1e3 * launch,
            _capacities(self._threads),
        )


def _capacities(threads: int) -> dict[str, int]:
    """The caches that the triads are measured in: a core's own for each thread, the last shared."""
    sizes = host.cache_bytes()
    return {f"L{n}": size * (threads if n < 3 else 1) for n, size in sizes.items() if n > 1}


def _levels(threads: int) -> dict[str, int]:
    """Level -> bytes that fit well into it, and not into the one before."""
    capacities = _capacities(threads)
    found = {name: capacity // 2 for name, capacity in capacities.items()}
    return found | {"memory": min(LARGEST, 8 * max(capacities.values(), default=LARGEST))}


def _triad(total: int, threads: int, target: Any) -> tuple[Any, int]:
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
