"""Factors of heads stand before the product of queries and keys, on both generations."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION


def attention(q, k, v, factor):
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), factor)
    return op.batch_matmul(op.softmax(scores), v)


SHAPES = {"q": (6, 49, 32), "k": (6, 53, 32), "v": (6, 53, 17)}


def arrays_of(shapes):
    rng = np.random.default_rng(3)
    return {name: rng.standard_normal(s).astype("float32") for name, s in shapes.items()}


def expected(q, k, v, factor):
    q, k, v, factor = (array.astype("float64") for array in (q, k, v, factor))
    scores = q @ k.swapaxes(-1, -2) * factor
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def kinds(program, shapes, constants):
    graph = ir.read(partition.prepare(emit(program, shapes, constants), None)["main"])
    return [call.kind for call in graph.ops]


FOUR_AXES = pytest.mark.skipif(GENERATION == "relay", reason="its products have three axes")


@pytest.mark.parametrize(
    "shape",
    [
        (6, 1, 1),
        *(pytest.param(s, marks=FOUR_AXES) for s in ((2, 3, 1, 1), (3, 1, 1), (1, 3, 1, 1))),
    ],
)
def test_one_kernel(shape):
    batch = (6,) if shape == (6, 1, 1) else (2, 3)
    arrays = arrays_of({n: (*batch, *s[1:]) for n, s in SHAPES.items()})
    factor = np.random.default_rng(1).uniform(0.1, 0.4, shape).astype("float32")
    shapes = {name: array.shape for name, array in arrays.items()} | {"factor": shape}
    mod = emit(attention, shapes, {"factor": factor})
    assert kinds(attention, shapes, {"factor": factor})[0] == "multiply"
    library = selfbyoc.build(selfbyoc.partition_for_tefuse(mod), cache=False)
    assert sum(library.report.counts.values()) == 1
    assert library.report.left == {}
    (found,) = library(*arrays.values())
    assert first_wrong(found, expected(**arrays, factor=factor), "float32", 32) is None


def test_scores_that_are_reshaped():
    """As Relay reads a product of four axes."""

    def program(q, k, v, factor):
        scores = op.batch_matmul(q, k, transpose_b=True)
        scores = op.multiply(op.reshape(scores, shape=(2, 3, 49, 53)), factor)
        return op.batch_matmul(op.reshape(op.softmax(scores), shape=(6, 49, 53)), v)

    arrays = arrays_of(SHAPES)
    factor = np.random.default_rng(1).uniform(0.1, 0.4, (3, 1, 1)).astype("float32")
    shapes = {**SHAPES, "factor": factor.shape}
    assert kinds(program, shapes, {"factor": factor})[0] == "multiply"
    library = selfbyoc.build(emit(program, shapes, {"factor": factor}))
    (found,) = library(*arrays.values())
    every = np.tile(factor, (2, 1, 1))
    assert first_wrong(found, expected(**arrays, factor=every), "float32", 32) is None


@pytest.mark.parametrize(
    "shape", [(6, 49, 1), (6, 1, 53), (1, 1, 1), (49, 53)], ids=["rows", "keys", "one", "each"]
)
def test_other_factors_stay(shape):
    arrays = arrays_of(SHAPES)
    factor = np.random.default_rng(1).uniform(0.1, 0.4, shape).astype("float32")
    shapes = {**SHAPES, "factor": shape}
    assert kinds(attention, shapes, {"factor": factor})[0] == "batch_matmul"
    library = selfbyoc.build(
        selfbyoc.partition_for_tefuse(emit(attention, shapes, {"factor": factor}))
    )
    (found,) = library(*arrays.values())
    assert first_wrong(found, expected(**arrays, factor=factor), "float32", 32) is None


def test_a_factor_that_is_an_input_stays():
    assert kinds(attention, {**SHAPES, "factor": (6, 1, 1)}, {})[0] == "batch_matmul"


def test_queries_that_all_heads_share_are_not_copied():
    shapes = {"q": (1, 49, 32), "k": (6, 53, 32), "v": (6, 53, 17), "factor": (6, 1, 1)}
    factor = np.ones((6, 1, 1), "float32") * 2
    assert kinds(attention, shapes, {"factor": factor})[0] == "batch_matmul"


def test_scores_that_are_read_twice():
    """The product is there twice, each right."""

    def program(q, k, factor):
        scores = op.batch_matmul(q, k, transpose_b=True)
        return op.multiply(scores, factor), op.relu(scores)

    arrays = arrays_of({"q": SHAPES["q"], "k": SHAPES["k"]})
    factor = np.random.default_rng(1).uniform(1, 4, (6, 1, 1)).astype("float32")
    shapes = {n: a.shape for n, a in arrays.items()} | {"factor": factor.shape}
    library = selfbyoc.build(emit(program, shapes, {"factor": factor}))
    scaled, positive = library(*arrays.values())
    scores = arrays["q"].astype("float64") @ arrays["k"].swapaxes(1, 2)
    assert first_wrong(scaled, scores * factor, "float32", 32) is None
    assert first_wrong(positive, np.maximum(scores, 0), "float32", 32) is None
