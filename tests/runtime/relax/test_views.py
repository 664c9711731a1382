"""A reshape at the end of a model is the memory of what it reads, where nobody else has that."""

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc import op
from selfbyoc.runtime.executors.relax import session
from selfbyoc.tvm import tensor

RNG = np.random.default_rng(0)
SHAPE, OTHER = (6, 35), (2, 3, 35)


def reshaped(x):
    return op.reshape(x, shape=OTHER)


def built(pattern, names=("x",)):
    return selfbyoc.build(selfbyoc.emit(pattern, dict.fromkeys(names, SHAPE)), cache=False)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_of_a_kernel_it_is_a_view():
    """Each call has a result of its own, which the next one does not overwrite."""
    library = built(lambda x: reshaped(op.softmax(x)))
    assert "vm.builtin.reshape" in library.native.stats()
    inputs = [RNG.standard_normal(SHAPE).astype("float32") for _ in range(4)]
    found = [library(x)[0] for x in inputs]
    for x, y in zip(inputs, found, strict=True):
        np.testing.assert_allclose(y, softmax(x).reshape(OTHER), rtol=1e-5, atol=1e-7)


def test_memory_that_others_read_meanwhile():
    """What it shows is computed long before the result, as kernels come and go."""

    def pattern(x, y):
        first = op.softmax(x)
        other = op.softmax(op.softmax(op.softmax(y)))
        return reshaped(op.softmax(op.add(first, op.mean(other, axis=-1, keepdims=True))))

    library = built(pattern, ("x", "y"))
    x, y = (RNG.standard_normal(SHAPE).astype("float32") for _ in range(2))
    other = softmax(softmax(softmax(y)))
    wanted = softmax(softmax(x) + other.mean(-1, keepdims=True)).reshape(OTHER)
    for _ in range(2):
        np.testing.assert_allclose(library(x, y)[0], wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore:nothing matched")
def test_an_argument_is_copied():
    library = built(reshaped)
    assert "vm.builtin.reshape" not in library.native.stats()
    x = RNG.standard_normal(SHAPE).astype("float32")
    (found,) = library(x)
    kept = x.copy()
    x[:] = 0
    np.testing.assert_array_equal(found, kept.reshape(OTHER))


def test_two_results_of_a_block_are_never_one_memory():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.nn.softmax(x))
            results = [builder.emit_output(relax.op.reshape(made, s)) for s in (OTHER, (35, 6))]
        builder.emit_func_output(relax.Tuple(results))
    library = selfbyoc.build(builder.get())
    given = RNG.standard_normal(SHAPE).astype("float32")
    found = [np.from_dlpack(each) for each in session(library.native)["main"](tensor(given))]
    for result in found:
        np.testing.assert_allclose(result.ravel(), softmax(given).ravel(), rtol=1e-5, atol=1e-7)
    assert not np.shares_memory(*found)
