"""What a composite leaves open: defaults in a build, other decisions for the tuner."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.target import host_target
from selfbyoc.errors import DecisionError, ScheduleError
from selfbyoc.ir.emit import emit
from selfbyoc.language.decisions import Choice, choose, deciding
from selfbyoc.tvm import tvm

ARGS = {"x": ((30, 7), "float32"), "w": ((12, 7), "float32")}
MODEL = (lambda x, w: op.relu(op.dense(x, w)), ARGS)


def composite(schedule):
    return Composite("dense_relu", MODEL[0], schedule=schedule)


def rows(sch, ops, target):
    """Rows in chunks; a chosen chunk decides whether there is a second loop at all."""
    loop, *_ = sch.get_loops(ops.relu.block)
    chunk = choose("chunk", (1, 2, 5), default=5)
    if chunk > 1:
        sch.split(loop, [None, chunk])


def sampled(sch, ops, target):
    """The same by TensorIR's own sampling."""
    loop, column = sch.get_loops(ops.relu.block)
    sch.split(loop, sch.sample_perfect_tile(loop, 2, 16, decision=[6, 5]))
    sch.split(column, [None, sch.sample_categorical([3, 4, 6], [0.2, 0.4, 0.4], decision=1)])


def scheduled(schedule, told=None):
    mod = selfbyoc.partition_for_tefuse(emit(*MODEL), composites=[composite(schedule)])
    (kernel,) = kernels(mod)
    with deciding(told) as decisions:
        _, made = kernel.schedule(host_target())
    return made.mod["main"], decisions


def extents(func):
    sch = selfbyoc.tvm.Schedule(tvm.IRModule({"main": func}))
    block = selfbyoc.tvm.get_block(sch, "relu")
    return [int(sch.get(loop).extent) for loop in sch.get_loops(block)]


def test_default_without_a_tuner():
    func, decisions = scheduled(rows)
    assert extents(func) == [6, 5, 12]
    assert decisions.made == {"chunk": Choice((1, 2, 5), 5, 5)}


@pytest.mark.parametrize(("told", "expected"), [(2, [15, 2, 12]), (1, [30, 12])])
def test_told_decisions_change_the_loops(told, expected):
    assert extents(scheduled(rows, {"chunk": told})[0]) == expected


def test_sampling_instructions_are_decisions():
    func, decisions = scheduled(sampled)
    assert extents(func) == [6, 5, 3, 4]
    tile, category = decisions.made.values()
    assert tile.default == (6, 5)
    assert set(tile.candidates) == {(2, 15), (3, 10), (5, 6), (6, 5), (10, 3), (15, 2), (30, 1)}
    assert (category.candidates, category.taken) == ((0, 1, 2), 1)
    first, second = decisions.made
    assert extents(scheduled(sampled, {first: (2, 15), second: 2})[0]) == [2, 15, 2, 6]


def test_build_takes_the_defaults_and_is_right():
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(dtype) for shape, dtype in ARGS.values())
    for schedule in (rows, sampled):
        library = selfbyoc.build(emit(*MODEL), composites=[composite(schedule)])
        assert library.report.counts == {"dense_relu": 1}
        np.testing.assert_allclose(library(x, w)[0], np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("told", "message"),
    [({"chunk": 3}, "'chunk' was given 3; expected one of"), ({"chunks": 2}, "'chunks'")],
)
def test_decisions_that_do_not_fit(told, message):
    with pytest.raises(DecisionError, match=message):
        scheduled(rows, told)[1].check_all_asked()


def test_a_default_that_is_no_candidate():
    with pytest.raises(ScheduleError, match="'tile' has default 3; expected one of"):
        choose("tile", (1, 2), default=3)


def test_one_name_for_two_questions():
    with deciding():
        choose("tile", (1, 2), default=1)
        with pytest.raises(ScheduleError, match="'tile' is asked for twice"):
            choose("tile", (1, 2, 4), default=1)


@pytest.mark.parametrize("kind", ["sample_categorical", "sample_perfect_tile"])
def test_sampling_without_a_default(kind):
    def schedule(sch, ops, target):
        loop, *_ = sch.get_loops(ops.relu.block)
        args = {"sample_categorical": ([1, 2], [0.5, 0.5]), "sample_perfect_tile": (loop, 2)}
        getattr(sch, kind)(*args[kind])

    with pytest.raises(ScheduleError, match=f"{kind}: expected decision="):
        scheduled(schedule)
