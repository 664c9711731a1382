"""Kernels of symbolic sizes: a task for each range, and its record for the sizes of that range."""

import timeit
from dataclasses import replace

import numpy as np
import pytest
from symbolic_programs import UNKNOWN, N, named

import selfbyoc
from selfbyoc import Composite, choose, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.symbolic import ranges
from selfbyoc.codegen.symbolic.rows import ROWS, of_rows
from selfbyoc.codegen.tuning_record import TUNED_AT, Tuned
from selfbyoc.errors import RecordWarning
from selfbyoc.ir.emit import emit
from selfbyoc.tuning import engine, run
from selfbyoc.tvm import te, tir

asked = []  # rows and what was chosen for them


def pausing(ins, call):
    """A relu that waits at each row: longer than any noise of a busy machine."""
    (x,) = ins
    rows = int(x.shape[0])
    pause = choose("pause", (200, 0), default=200)
    asked.append((rows, pause))
    if not pause:
        return te.compute(x.shape, lambda i, j: tir.max(x[i, j], 0.0), name="found")
    waited = tir.call_extern("int32", "usleep", pause).astype("float32")  # of microseconds; gives 0
    zero = tir.const(0, "float32")
    return te.compute(
        x.shape,
        lambda i, j: tir.max(x[i, j], 0.0) + tir.if_then_else(j == 0, waited, zero),
        name="found",
    )


def schedule(sch, ops, target):
    pass


SLOW = Composite("slow", lambda x: op.relu(x), schedule, compute={"relu": pausing})


def partitioned():
    mod = named(emit(lambda x: op.relu(x), {"x": (UNKNOWN, 16)}), {"x": (N, 16)})
    return selfbyoc.partition_for_tefuse(mod, composites=[SLOW])


def test_a_task_for_each_range():
    tasks = selfbyoc.extract_tasks(partitioned(), include_simple_tasks=True)
    assert [task.sizes[N] for task in tasks] == [1, 5, 19, 83, 331]
    assert [task.source.graph.inputs[0].shape[0] for task in tasks] == [1, 5, 19, 83, 331]
    assert str(tasks[3]) == "slow: float32[83, 16] -> float32[83, 16] (n=83)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records of the task of 83 rows, for those up to 128."""
    found = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "BUILDERS", 1)
        patch.setattr(run, "TIMED", 0.01)
        patch.setattr(run, "LEAST", 2.0)
        patch.setattr(ranges, "RANGES", ((None, 83),))
        selfbyoc.tune(partitioned(), None, 2, found, cost_model="none", include_simple_tasks=True)
    return found


def test_a_record_serves_its_range(folder):
    asked.clear()
    with selfbyoc.apply_records(folder) as applied:
        library = selfbyoc.build(partitioned(), cache=False)
    assert len(applied.used) == 1
    assert {pause for rows, pause in asked if 32 < rows <= 128} >= {0}
    assert (509, 200) in asked
    for rows in (1, 5, 33, 100, 128, 129, 300):
        x = np.random.default_rng(rows).standard_normal((rows, 16)).astype("float32")
        np.testing.assert_array_equal(library(x)[0], np.maximum(x, 0))
    times = {}
    for rows in (128, 129):
        call = library.prepared(np.ones((rows, 16), "float32"))
        times[rows] = min(timeit.repeat(call, number=1, repeat=3))
    assert times[128] * 3 < times[129]  # one waits 26 ms


@pytest.mark.parametrize(("shape", "at", "rows"), [((5, N, 6), "n=83", 415), ((N, 3, 6), None, 0)])
def test_the_records_of_several_axes_serve_their_rows(shape, at, rows):
    """Such a kernel is of the number of its rows (rows.py), and keeps what was tuned."""
    unknown = tuple(UNKNOWN if extent == N else extent for extent in shape)
    weight = {"w": np.ones((38, 6), "float32")}
    mod = named(emit(lambda x, w: op.dense(x, w), {"x": unknown}, weight), {"x": shape})
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod))
    told = {TUNED_AT: {at: Tuned({"tile": (2, 3)}).attr()}}
    flat = of_rows(replace(kernel.source, attrs={**kernel.source.attrs, **told}))
    if at is None:
        assert flat is None
        return
    assert ranges.decisions_at(flat, {ROWS: rows}) == {"tile": (2, 3)}
    assert ranges.decisions_at(flat, {ROWS: 100}) == {}


def test_without_records_it_is_built_as_ever(folder):
    asked.clear()
    selfbyoc.build(partitioned(), cache=False)
    assert {pause for _, pause in asked} == {200}


def test_a_record_of_another_place(folder):
    mod = named(emit(lambda x: op.relu(x), {"x": (UNKNOWN, 16)}), {"x": (N, 16)})
    with pytest.warns(RecordWarning, match="there are records for"):  # noqa: SIM117
        with selfbyoc.apply_records(folder):
            selfbyoc.build(mod, "llvm", composites=[SLOW], cache=False)
