"""Products of matrices that are both computed: tails, broadcast batches, transposed sides, what is
left out.
"""

import numpy as np
import pytest
from harness import assert_close, cpus, run_case
from random_cases import RANDOM, hypothesis

import selfbyoc
from selfbyoc import Case, op
from selfbyoc.machine import machine
from selfbyoc.schedules.composites.batch_matmul import batch_matmul
from selfbyoc.schedules.kernels.matmul.plan import usual
from selfbyoc.tvm import GENERATION, make_target

st = hypothesis.strategies
THREE_AXES = pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
TARGETS = cpus(None, "llvm -mcpu=haswell", "llvm -mcpu=x86-64")


def program(transpose_a=False, transpose_b=False):
    return lambda x, y: op.batch_matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


def sides(batch, rows, depth, columns, turned):
    x = (*batch, depth, rows) if turned[0] else (*batch, rows, depth)
    return x, (*batch, columns, depth) if turned[1] else (*batch, depth, columns)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(1, 7, 4), (13, 1, 19), (37, 50, 64), (20, 33, 97), (17, 300, 66), (3, 5, 200)],
)
def test_tails(rows, depth, columns, turned, target):
    x, y = sides((3,), rows, depth, columns, turned)
    run = run_case(
        batch_matmul, Case(program(*turned), x=x, y=y), target=target and make_target(target)
    )
    assert run.counts == {"batch_matmul": 1}
    assert_close(run)


@THREE_AXES
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((2, 3, 9, 8), (2, 3, 8, 21)),
        ((2, 1, 9, 8), (1, 3, 8, 21)),
        ((9, 8), (3, 8, 21)),
        ((4, 9, 8), (1, 8, 21)),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_batches_are_broadcast(x, y, turned):
    y = (*y[:-2], y[-1], y[-2]) if turned else y
    run = run_case(batch_matmul, Case(program(False, turned), x=x, y=y))
    assert run.counts == {"batch_matmul": 1}
    assert_close(run)


def test_what_follows_joins():
    def scaled(x, y, z):
        return op.add(op.relu(op.multiply(op.batch_matmul(x, y), 0.5)), z)

    case = Case(scaled, x=(2, 11, 30), y=(2, 30, 45), z=(2, 11, 45))
    run = run_case(batch_matmul, case)
    assert run.counts == {"batch_matmul": 1}
    assert_close(run)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_bias_of_other_axes_joins(batch):
    """It is reshaped on its way into the result: found by the fuzzer, on one row of one."""
    case = Case(
        lambda x, y, z: op.add(op.batch_matmul(x, y), z),
        x=(batch, 11, 5), y=(2, 5, 45), z=(1, 1, 45),
    )  # fmt: skip
    if batch == 1 and GENERATION == "relay":
        pytest.skip("Relay's product has as many batches on both sides")
    run = run_case(batch_matmul, case)
    assert run.counts == {"batch_matmul": 1}
    assert_close(run)


def test_one_value_on_both_sides():
    case = Case(lambda x: op.batch_matmul(x, x, transpose_b=True), x=(2, 23, 40))
    run = run_case(batch_matmul, case)
    assert run.counts == {"batch_matmul": 1}
    assert_close(run)


def test_attention_is_taken_first():
    def attended(q, k, v):
        return op.batch_matmul(op.softmax(op.batch_matmul(q, k, transpose_b=True)), v)

    case = Case(attended, q=(2, 9, 16), k=(2, 7, 16), v=(2, 7, 16))
    run = run_case(batch_matmul, case, composites=selfbyoc.BUILTIN)
    assert run.counts == {"attention": 1}


@pytest.mark.parametrize(
    ("shape", "dtype", "why"),
    [
        ((2, 8, 3), "float32", "3 columns fill no vector"),
        ((2, 8, 16), "float64", "only float32 is scheduled, found float64"),
    ],
)
def test_what_is_refused(shape, dtype, why):
    from selfbyoc.ir.emit import emit

    mod = emit(program(), {"x": ((2, 5, 8), dtype), "y": (shape, dtype)})
    part = selfbyoc.partition_for_tefuse(mod, composites=[batch_matmul])
    assert selfbyoc.report(part).counts == {}
    assert why in str(selfbyoc.explain(mod, composites=[batch_matmul]))


@RANDOM
@hypothesis.given(
    st.integers(1, 4), st.integers(1, 40), st.integers(1, 70), st.integers(4, 140),
    st.tuples(st.booleans(), st.booleans()),
)  # fmt: skip
def test_random_sizes(batch, rows, depth, columns, turned):
    x, y = sides((batch,), rows, depth, columns, turned)
    assert_close(run_case(batch_matmul, Case(program(*turned), x=x, y=y)))


@pytest.mark.parametrize("mcpu", ["x86-64", "haswell", "skylake-avx512"])
@pytest.mark.parametrize("shape", [(8, 785, 19), (1, 512, 512), (2, 3, 1, 197), (64, 16, 33)])
def test_tiles_fit_and_cover(shape, mcpu):
    cpu = machine(make_target({"kind": "llvm", "mcpu": mcpu, "num-cores": 2}))
    for plan in usual(shape, 50, False, cpu):
        assert plan.tile.fits(cpu)
        assert 0 <= plan.tiles * plan.height - shape[-2] < plan.height
        assert 0 <= plan.panels * plan.width - shape[-1] < plan.width
        assert plan.packed == (shape[-1] % plan.width > 0)
        assert plan.tiles % plan.groups == 0
    assert np.prod(shape[:-2]) <= usual(shape, 50, False, cpu)[0].tasks
