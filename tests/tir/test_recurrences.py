"""What a stage gives of the step before: sums over a sequence; schedules that break the order."""

import numpy as np
import pytest

from selfbyoc.errors import ScheduleError
from selfbyoc.schedules.steps.carried import carry
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tir.recurrences import CARRIED
from selfbyoc.tvm import Schedule, get_block, get_func, make_target, te, tensor

STEPS, WIDTH = 7, 5


def function():
    """x [steps, width] and first [width] -> twice the running sums, halved at each step."""
    x = te.placeholder((STEPS, WIDTH), "float32", name="x")
    first = te.placeholder((WIDTH,), "float32", name="first")
    before = te.compute(
        (STEPS, WIDTH), lambda t, j: first(j), name="before", attrs={CARRIED: "the step before"}
    )
    state = te.compute((STEPS, WIDTH), lambda t, j: before(t, j) * 0.5 + x(t, j), name="state")
    twice = te.compute((STEPS, WIDTH), lambda t, j: state(t, j) * 2.0, name="twice")
    return te.create_prim_func([x, first, twice]).with_attr("global_symbol", "main")


def blocks(sch):
    return get_block(sch, "before"), get_block(sch, "state")


def in_steps(sch):
    """Both stages under one loop over the steps."""
    before, state = blocks(sch)
    sch.merge(sch.get_loops(before)[0], sch.get_loops(state)[0])
    carry(sch, before, state)
    return sch.get_loops(state)[0]


def run(sch):
    """Against NumPy."""
    target = make_target("llvm")
    func = sch.mod["main"].with_attr("target", target)
    built = machine_code(finished(func, target), "main", target)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((STEPS, WIDTH)).astype("float32")
    first = rng.standard_normal(WIDTH).astype("float32")
    found = tensor(np.zeros((STEPS, WIDTH), "float32"))
    get_func(built, "main")(tensor(x), tensor(first), found)
    expected = []
    for row in x:
        first = first * np.float32(0.5) + row
        expected.append(first)
    np.testing.assert_allclose(found.numpy(), np.stack(expected) * 2, rtol=1e-6)


def test_the_step_before():
    sch = Schedule(function())
    in_steps(sch)
    run(sch)


def test_states_that_nobody_reads_after_their_step():
    """TVM would keep one step of the buffer, inside of the loop."""
    sch = Schedule(function())
    steps = in_steps(sch)
    sch.reverse_compute_at(get_block(sch, "twice"), steps)
    run(sch)


def test_units_in_parallel():
    sch = Schedule(function())
    before, state = blocks(sch)
    for block in (before, state):
        t, j = sch.get_loops(block)
        sch.reorder(j, t)
    sch.merge(sch.get_loops(before)[1], sch.get_loops(state)[1])
    carry(sch, before, state)
    sch.parallel(sch.get_loops(state)[0])
    run(sch)


def _apart(sch):
    carry(sch, *blocks(sch))


def _in_parallel(sch):
    sch.parallel(in_steps(sch))


def _unsaid(sch):
    before, state = blocks(sch)
    sch.merge(sch.get_loops(before)[0], sch.get_loops(state)[0])


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (_apart, "before and state have no common loop over the steps"),
        (_in_parallel, "the loop over the steps of state is not serial"),
        (_unsaid, "no schedule says whose steps before carries on"),
    ],
)
def test_schedules_that_break_the_order(schedule, said):
    sch = Schedule(function())
    schedule(sch)
    with pytest.raises(ScheduleError, match=said):
        run(sch)
