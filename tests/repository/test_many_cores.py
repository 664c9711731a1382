"""`tools/many_cores.py`: what is counted of schedules, and the model of time."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.tir.lowering import finished
from selfbyoc.tvm import Schedule, get_block, make_target, te, tvm

sys.path.append(str(Path(__file__).parents[2] / "tools"))
counting, timing = (importlib.import_module(f"simulated_cores.{n}") for n in ("counting", "timing"))
TARGET = make_target({"kind": "llvm", "mcpu": "haswell", "num-cores": 4})
LIMITS = timing.Limits(launch_of_one=0.5, launch_of_two=1.0, bandwidth=1e4, peak=1e5)


def written(shape, axis, tasks, lanes=8):
    """A copy, `tasks` parallel pieces of an axis; the rest in vectors, where they fit."""
    x = te.placeholder(shape, name="x")
    y = te.compute(shape, lambda *at: x(*at) + 1, name="y")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([x, y])}))
    loops = sch.get_loops(get_block(sch, "y"))
    task, rest = sch.split(loops[axis], [tasks, None])
    left = [loop for n, loop in enumerate(loops) if n != axis]
    order = [task, *left, rest] if axis else [task, rest, *left]
    sch.reorder(*order)
    sch.parallel(task)
    if lanes > 1:
        sch.vectorize(sch.split(order[-1], [None, lanes])[1])
    return finished(sch.mod["main"], TARGET)


# Rows of 24 floats are a line and a half: the 1st and 2nd share one, the 3rd and 4th too.
@pytest.mark.parametrize(
    ("shape", "axis", "tasks", "cores", "shared"),
    [
        ((4, 24), 0, 4, 4, 2),
        ((4, 24), 0, 4, 2, 0),
        ((4, 24), 0, 2, 4, 0),
        ((4, 24), 1, 3, 3, 6),  # half a line each
        ((4, 32), 1, 4, 4, 8),
        ((4, 32), 1, 4, 2, 0),
        ((4, 32), 1, 4, 1, 0),
    ],
)
def test_lines_that_two_cores_write(shape, axis, tasks, cores, shared):
    whole = shape[0] * shape[1] * 4 // 64
    assert counting.lines(written(shape, axis, tasks), TARGET, cores) == [(whole, shared)]


def test_single_elements_count_as_vectors_do():
    assert counting.lines(written((4, 24), 0, 4, lanes=1), TARGET, 4) == [(6, 2)]


def test_a_kernel_is_counted_as_it_is_scheduled():
    shapes = {"x": ((32, 48), "float32"), "w": ((64, 48), "float32")}
    w = np.ones((64, 48), "float32")
    mod = emit(lambda x, w: op.relu(op.dense(x, w)), shapes, {"w": w})
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=TARGET))
    found = counting.counted(kernel, TARGET, 4)
    assert found.composite == "dense"
    assert found.flops >= 2 * 32 * 48 * 64
    assert found.weights == 4 * 48 * 64
    assert found.bytes == 4 * (32 * 48 + 48 * 64 + 32 * 64)
    assert found.lines == 4 * 32 * 64 // 64
    assert 0 <= found.shared <= found.lines
    assert sum(region.share for region in found.regions) == pytest.approx(1)


def kernel(*regions, weights=0):
    made = tuple(counting.Region(tasks, share) for tasks, share in regions)
    return counting.Counted("symbol", "name", made, 10**6, weights, 0, 0, 0)


def test_three_tasks_on_two_cores_take_as_long_as_four():
    found = timing.parts(kernel((3, 1.0)), 90.5, 2, LIMITS)
    assert (found.even, found.imbalance, found.memory, found.launch) == (45, 15, 0, 1.0)
    assert found.all == 61
    whole = timing.parts(kernel((3, 1.0)), 90.5, 1, LIMITS)
    assert whole.all == pytest.approx(90.5)


def test_what_is_in_no_region_and_what_comes_from_memory():
    found = timing.parts(kernel((8, 0.25), (64, 0.25)), 101, 64, LIMITS)
    assert found.launch == pytest.approx(2 * (1 + 62 * timing.HAND_OVER))
    assert found.even + found.imbalance == pytest.approx(100 * (0.5 + 0.25 / 8 + 0.25 / 64))
    bound = timing.parts(kernel((64, 1.0), weights=10**7), 1000.5, 64, LIMITS)
    assert bound.even + bound.memory == pytest.approx(10**7 / (16 * 1e4))
    assert timing.roofline(kernel(weights=10**7), LIMITS) == 1000


def test_percentiles():
    assert [timing.percentile([3, 1, 2], share) for share in (0, 0.5, 1)] == [1, 2, 3]
