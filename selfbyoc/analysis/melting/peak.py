"""Measured times: a kernel's, and the machine's peak of multiply-adds to compare it with."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...errors import InputError
from ...machine import host, machine
from ...runtime.timing import latency
from ...tir.dot_products import with_dot_products
from ...tir.lowering import finished, machine_code
from ...tvm import Schedule, get_block, get_func, param_buffers, te, tensor, tir, tvm
from ...tvm.alignment import any_alignment
from ...tvm.build import build_module
from ...tvm.config import kernel_config
from ...tvm.own_ops import LEVELS_OF, dot
from ...tvm.types import PackedFunc, PrimFunc, Target
from .allocations import threads_of

# Rows and lanes of tiles of accumulators: for 32 registers of AVX-512, 16 of AVX2, 32 of NEON.
TILES = ((8, 32), (6, 16), (12, 8))
TERMS, TURNS, SETS = 96, 4096, 4  # operands of 24 KB stay in L1; a call takes about 1 ms


@dataclass(frozen=True)
class Lane:
    """What a lane of 32 bits adds to its sum in one instruction: so many products."""

    dtype: str = "float32"
    times: Callable[[Any, Any], Any] = operator.mul
    products: int = 1


def of_levels(target: Target) -> Lane:
    """Exact products of bytes, as kernels of levels have them."""
    kind = machine(target).products
    return Lane("int32", partial(dot, kind), LEVELS_OF[kind])


@dataclass(frozen=True)
class Peak:
    """Multiply-adds in registers on all threads."""

    gflops: float
    quiet: bool


@dataclass(frozen=True)
class Timing:
    """A kernel's measured time, alone on warm caches."""

    milliseconds: float
    quiet: bool  # whether there were windows that nothing disturbed
    gflops: float
    of_peak: float | None  # None for other types than float32: the peak is of float32


def measured_peak(target: Target, windows: int = 9) -> Peak:
    """The best of some tiles that stay in registers."""
    if str(target.kind) != "llvm":
        raise InputError(f"time: kernels are timed for llvm only, not {target.kind}")
    return FmaPeak(target).measured(windows)


class FmaPeak:
    """The kernels that measure it, built: to build is no part of what needs a quiet machine."""

    def __init__(
        self, target: Target, threads: int | None = None, lane: Lane | None = None
    ) -> None:
        self._lane = lane = lane or Lane()
        self._threads = threads or threads_of(target)
        self._runs: dict[str, Any] = {}
        for rows, lanes in TILES:
            shapes = (SETS, TERMS, rows), (TERMS, lanes), (self._threads, TURNS, rows, lanes)
            arrays = [tensor(np.ones(shape, lane.dtype)) for shape in shapes]
            function = _built(_multiply_adds(self._threads, rows, lanes, lane), target)
            self._runs[f"{rows}x{lanes}"] = lambda f=function, a=arrays: f(*a)

    def measured(self, windows: int = 9) -> Peak:
        """The rate of the fastest tile."""
        found = latency(self._runs, windows=windows, budget=2.0)
        each = self._lane.products
        work = {f"{rows}x{lanes}": each * rows * lanes for rows, lanes in TILES}
        rates = {
            name: 2e-6 * self._threads * TURNS * TERMS * work[name] / time.milliseconds
            for name, time in found.items()
        }
        best = max(rates, key=lambda name: rates[name])
        return Peak(rates[best], found[best].quiet)


def _multiply_adds(threads: int, rows: int, lanes: int, lane: Lane) -> PrimFunc:
    """Tiles of sums in registers, one after the other; each thread its own."""
    left = te.placeholder((SETS, TERMS, rows), lane.dtype, name="left")
    right = te.placeholder((TERMS, lanes), lane.dtype, name="right")
    k = te.reduce_axis((0, TERMS), name="k")
    out = te.compute(
        (threads, TURNS, rows, lanes),
        # The operand changes with the turn: else the compiler may compute one tile only.
        lambda t, n, r, x: te.sum(
            lane.times(left[tir.floormod(n, SETS), k, r], right[k, x]), axis=k
        ),
        name="out",
    )
    func = te.create_prim_func([left, right, out])
    sch = Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))
    block = get_block(sch, "out")
    store = sch.cache_write(block, 0, "local")
    thread, turn, row, column, term = sch.get_loops(block)
    sch.reorder(thread, turn, term, row, column)
    sch.reverse_compute_at(store, turn)
    sch.parallel(thread)
    sch.unroll(row)
    sch.vectorize(column)
    sch.unroll(sch.get_loops(store)[-2])
    sch.vectorize(sch.get_loops(store)[-1])
    init = sch.decompose_reduction(block, term)
    sch.unroll(sch.get_loops(init)[-2])
    sch.vectorize(sch.get_loops(init)[-1])
    return sch.mod["main"]


def _built(func: PrimFunc, target: Target) -> PackedFunc:
    host.check_runs(target, "time")
    func = any_alignment(with_dot_products(func, target)).with_attr("global_symbol", "timed")
    with tvm.transform.PassContext(opt_level=3, config=kernel_config(target)):
        return get_func(build_module(tvm.IRModule({"timed": func}), target), "timed")


def timing(func: PrimFunc, target: Target, flops: int, peak: Peak) -> Timing:
    """Build a scheduled PrimFunc and time it on random arguments."""
    rng = np.random.default_rng(0)
    arrays, dtypes = [], set()
    for buffer in param_buffers(func):
        shape, dtype = tuple(int(e) for e in buffer.shape), str(buffer.dtype)
        dtypes.add(dtype)
        floats = dtype.startswith("float")
        values = rng.standard_normal(shape) if floats else rng.integers(0, 3, shape)
        arrays.append(tensor(np.asarray(values).astype(dtype)))
    host.check_runs(target, "time")
    # With what `finished` adds, as the kernel of a model has it.
    kernel = finished(func, target).with_attr("global_symbol", "timed")
    function = get_func(machine_code(kernel, "timed", target), "timed")
    found = latency({"kernel": lambda: function(*arrays)}, windows=15, budget=1.0)["kernel"]
    rate = 1e-6 * flops / found.milliseconds
    share = rate / peak.gflops if dtypes == {"float32"} else None
    return Timing(found.milliseconds, found.quiet, rate, share)
