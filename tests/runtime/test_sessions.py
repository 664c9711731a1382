"""Calling a library: sessions without copies, and several threads at once."""

import threading

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.errors import InputError
from selfbyoc.runtime.library import Session

SHAPES = {"x": ((33, 65), "float32"), "weight": ((17, 65), "float32"), "bias": ((17,), "float32")}


def program(x, weight, bias):
    return op.tanh(op.relu(op.bias_add(op.dense(x, weight), bias)))


def library():
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal(SHAPES[n][0]).astype("float32") for n in ("weight", "bias")}
    mod = selfbyoc.partition_for_tefuse(emit(program, SHAPES, weights))
    assert selfbyoc.report(mod).counts == {"dense": 1}
    return selfbyoc.build(mod), weights


def expected(x, weights):
    return np.tanh(np.maximum(x @ weights["weight"].T + weights["bias"], 0))


def inputs(count):
    rng = np.random.default_rng(1)
    return [rng.standard_normal(SHAPES["x"][0]).astype("float32") for _ in range(count)]


def test_a_session_runs_on_tensors():
    built, weights = library()
    session = built.session()
    assert isinstance(session, Session)
    for x in inputs(3):
        (found,) = session(session.tensor(x))
        np.testing.assert_allclose(found.numpy(), expected(x, weights), rtol=1e-4, atol=1e-5)
    x = session.tensor(inputs(1)[0])
    first = session(x)[0].numpy()
    x.copyfrom(np.zeros(SHAPES["x"][0], "float32"))  # the same tensor, other values
    np.testing.assert_allclose(
        session(x)[0].numpy(), expected(x.numpy(), weights), rtol=1e-4, atol=1e-5
    )
    assert np.abs(first - session(x)[0].numpy()).max() > 0.1


@pytest.mark.parametrize("around", [op.exp, lambda x: x], ids=["kernels alone", "passed on"])
def test_tensors_of_another_type(around):
    """On Relay a smaller dtype was read as float32, past its end; a missing tensor was the last."""
    given = {"x": ((5, 17), "float32"), "y": ((5, 17), "float32")}
    run = selfbyoc.build(emit(lambda x, y: (op.softmax(x), around(y)), given)).session()
    good = run.tensor(np.ones((5, 17), "float32"))
    run(good, good)
    others = [np.ones((5, 17), d) for d in ("int8", "int32", "float64")]
    for array in [*others, np.ones((4, 17), "float32"), np.ones(85, "float32")]:
        for tensors in ([run.tensor(array), good], [good, run.tensor(array)]):
            with pytest.raises((InputError, ValueError, RuntimeError)):  # TVM's own, some of them
                run(*tensors)
    for tensors in ([good], [good, good, good]):
        with pytest.raises((InputError, TypeError, RuntimeError, ValueError)):
            run(*tensors)
    np.testing.assert_allclose(run(good, good)[0].numpy(), 1 / 17, rtol=1e-6)


def test_what_a_call_returned_stays():
    """Unlike a session's outputs on Relay, those of a call are the caller's own."""
    built, weights = library()
    a, b = inputs(2)
    first = built(a)[0]
    built(b)
    np.testing.assert_allclose(first, expected(a, weights), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shared", [False, True], ids=["a session each", "one library"])
def test_several_threads_at_once(shared):
    built, weights = library()
    wrong = []

    def work(x):
        call = built if shared else built.session()
        given = x if shared else call.tensor(x)
        for _ in range(30):
            found = call(given)[0]
            found = found if shared else found.numpy()
            if not np.allclose(found, expected(x, weights), rtol=1e-4, atol=1e-5):
                wrong.append(x)

    workers = [threading.Thread(target=work, args=(x,)) for x in inputs(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_unaligned_arrays_by_position_and_name():
    built, weights = library()
    room = np.zeros(33 * 65 + 1, "float32")
    x = room[1:].reshape(33, 65)
    x[:] = inputs(1)[0]
    for found in (built(x), built(x=x), built(np.asfortranarray(x))):
        np.testing.assert_allclose(found[0], expected(x, weights), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "passing", [lambda x: x, lambda x: op.reshape(x, shape=(65, 33)), lambda x: (x, op.relu(x))]
)
def test_an_input_that_is_an_output(passing):
    """The memory that a call is given, handed out again."""
    built = selfbyoc.build(emit(passing, {"x": SHAPES["x"]}))
    session = built.session()
    first, second = inputs(2)
    returned = built(first)[0]
    for x in (first, second):
        np.testing.assert_array_equal(session(session.tensor(x))[0].numpy().ravel(), x.ravel())
        np.testing.assert_array_equal(built(x)[0].ravel(), x.ravel())
    np.testing.assert_array_equal(returned.ravel(), first.ravel())
    assert not np.shares_memory(returned, first)


def test_a_constant_that_is_an_output_cannot_be_changed():
    weight = np.ones((3, 5), "float32")
    shapes = {"x": ((4, 4), "float32"), "w": ((3, 5), "float32")}
    built = selfbyoc.build(emit(lambda x, w: (op.relu(x), w), shapes, {"w": weight}))
    x = np.ones((4, 4), "float32")
    built(x)[1][:] = 7
    np.testing.assert_array_equal(built(x)[1], weight)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int32", "int64"])
def test_dtypes_of_inputs_and_outputs(dtype):
    built = selfbyoc.build(emit(lambda x: op.add(x, x), {"x": ((5, 7), dtype)}))
    x = np.arange(35).reshape(5, 7).astype(dtype)
    for given in (x, x[::-1], x.T.copy().T):
        (found,) = built(given)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, given + given)
