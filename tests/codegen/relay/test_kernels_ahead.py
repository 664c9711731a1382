"""The kernels of a relay.build are made before it, several at once: TVM asks for one after the
other.
"""

import threading

import numpy as np
import pytest
from tvm import relay

import selfbyoc
from selfbyoc import Composite, emit, op, partition_for_tefuse
from selfbyoc.codegen import progress
from selfbyoc.codegen import relay as hook
from selfbyoc.errors import ScheduleError

RNG = np.random.default_rng(0)
SHAPES = {"x": ((3, 17), "float32"), "v": ((9, 17), "float32"), "w": ((5, 9), "float32")}
X, V, W = (RNG.standard_normal(shape).astype("float32") for shape, _ in SHAPES.values())
ANSWER = np.maximum(np.maximum(X @ V.T, 0) @ W.T, 0)
dense_relu = Composite("dense_relu", lambda x, w: op.relu(op.dense(x, w)))


def program(x, v, w):
    return op.relu(op.dense(op.relu(op.dense(x, v)), w))


def module():
    return emit(program, SHAPES, {"v": V, "w": W})


@pytest.fixture
def makers(monkeypatch):
    """The threads that made a kernel; each waits for another one."""
    seen, both, lower = [], threading.Barrier(2, timeout=60), progress.lower

    def made(source, target):
        both.wait()
        seen.append(threading.current_thread().name)
        return lower(source, target)

    monkeypatch.setattr(progress, "lower", made)
    monkeypatch.setattr("selfbyoc.codegen.parallel.core_count", lambda: 2)
    return seen


def test_several_at_once_and_each_once(makers):
    library = selfbyoc.build(module(), composites=[dense_relu], cache=False)
    assert len(makers) == len(library.report.matched) == 2
    assert len(set(makers)) == 2
    assert all(name.startswith("selfbyoc") for name in makers)
    np.testing.assert_allclose(library(X)[0], ANSWER, rtol=1e-4, atol=1e-5)


def test_whoever_calls_relay_build_gets_them_one_by_one(monkeypatch):
    monkeypatch.setattr(hook, "all_made", None)
    lib = relay.build(partition_for_tefuse(module(), composites=[dense_relu]), target="llvm")
    assert lib.get_lib() is not None


def test_what_one_raises_is_raised_and_the_next_build_is_a_new_one():
    def wrong(sch, blocks, target):
        raise ValueError("not today")

    odd = Composite("odd", lambda x, w: op.relu(op.dense(x, w)), schedule=wrong)
    with pytest.raises(ScheduleError, match="not today"):
        selfbyoc.build(module(), composites=[odd], cache=False)
    assert hook._ahead.get() is None
    library = selfbyoc.build(module(), composites=[dense_relu], cache=False)
    np.testing.assert_allclose(library(X)[0], ANSWER, rtol=1e-4, atol=1e-5)
