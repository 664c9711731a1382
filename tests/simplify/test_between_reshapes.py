"""Ops with constants between two reshapes, on both generations."""

from math import prod

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.simplify.between_reshapes import in_axes

RNG = np.random.default_rng(5)


def kinds(program, shapes, constants):
    graph = ir.read(partition.prepare(emit(program, shapes, constants), None)["main"])
    return [call.kind for call in graph.ops]


@pytest.mark.parametrize(
    ("shape", "between", "constant", "told"),
    [
        ((128, 3, 7, 7), (2, 64, 3, 7, 7), (64, 1, 7, 7), (128, 1, 7, 7)),
        ((64, 3, 7, 7), (1, 64, 3, 7, 7), (1, 64, 1, 7, 7), (64, 1, 7, 7)),
        ((64, 3, 7, 7), (1, 64, 3, 7, 7), (7, 7), (1, 1, 7, 7)),
        ((6, 5), (2, 3, 5), (3, 1), (6, 1)),
        ((6, 5), (2, 15), (15,), (6, 5)),
        ((6, 5), (2, 15), (), (1, 1)),
        ((1, 1), (1, 1, 1), (1,), (1, 1)),
        ((4, 1, 6), (2, 2, 3, 1, 2), (1, 2), (1, 1, 6)),
    ],
)
def test_constants_in_other_axes(shape, between, constant, told):
    array = RNG.standard_normal(constant)
    found = in_axes(array, between, shape)
    assert found.shape == told
    wanted = np.broadcast_to(array, between).reshape(shape)
    np.testing.assert_array_equal(np.broadcast_to(found, shape), wanted)


OPS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}


@pytest.mark.parametrize("kind", OPS)
@pytest.mark.parametrize("is_first", [True, False])
def test_right(kind, is_first):
    shape, between, of = (6, 5, 7), (2, 3, 5, 7), (3, 1, 7)
    c = RNG.uniform(1, 2, of).astype("float32")
    x = RNG.uniform(1, 2, shape).astype("float32")

    def program(x, c):
        moved = op.reshape(x, shape=between)
        sides = (moved, c) if is_first else (c, moved)
        return op.reshape(getattr(op, kind)(*sides), shape=shape)

    assert "reshape" not in kinds(program, {"x": shape, "c": of}, {"c": c})
    library = selfbyoc.build(emit(program, {"x": shape, "c": of}, {"c": c}))
    (found,) = library(x)
    sides = (x.reshape(between), c) if is_first else (c, x.reshape(between))
    assert first_wrong(found, OPS[kind](*sides).reshape(shape), "float32", 1) is None


def windows(shape, between):
    def program(q, k, v, bias, mask):
        scores = op.add(op.batch_matmul(q, k, transpose_b=True), bias)
        masked = op.reshape(op.add(op.reshape(scores, shape=between), mask), shape=shape)
        return op.batch_matmul(op.softmax(masked), v)

    return program


@pytest.mark.parametrize("batch", [1, 2])
def test_attention_of_shifted_windows_is_one_kernel(batch):
    number, rows, depth = 5, 19, 16
    shape, between = (batch * number, rows, rows), (batch, number, rows, rows)
    q, k, v = (RNG.standard_normal((shape[0], rows, depth)).astype("float32") for _ in range(3))
    bias = RNG.standard_normal((1, rows, rows)).astype("float32")
    mask = np.where(RNG.random((1, number, rows, rows)) < 0.3, -100, 0).astype("float32")
    arrays = {"q": q, "k": k, "v": v, "bias": bias, "mask": mask}
    shapes = {name: array.shape for name, array in arrays.items()}
    constants = {"bias": bias, "mask": mask}
    library = selfbyoc.build(emit(windows(shape, between), shapes, constants))
    assert (library.report.counts, library.report.left) == ({"attention": 1}, {})
    scores = q.astype("float64") @ k.swapaxes(1, 2) + bias
    scores = (scores.reshape(between) + mask).reshape(shape)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    (found,) = library(q, k, v)
    assert first_wrong(found, powers / powers.sum(-1, keepdims=True) @ v, "float32", rows) is None


@pytest.mark.parametrize(
    ("shape", "between", "after"),
    [((6, 5), (2, 15), (3, 10)), ((6, 5), (30,), (5, 6)), ((4, 9), (2, 2, 9), (2, 18))],
)
def test_another_shape_stays(shape, between, after):
    c = RNG.standard_normal(between[-1:]).astype("float32")
    x = RNG.standard_normal(shape).astype("float32")

    def program(x, c):
        return op.reshape(op.add(op.reshape(x, shape=between), c), shape=after)

    assert "reshape" in kinds(program, {"x": shape, "c": c.shape}, {"c": c})
    (found,) = selfbyoc.build(emit(program, {"x": shape, "c": c.shape}, {"c": c}))(x)
    np.testing.assert_array_equal(found, (x.reshape(between) + c).reshape(after))


@pytest.mark.parametrize(("batch", "stays"), [(1, False), (4, False), (5, True)])
def test_a_large_constant_is_not_repeated(batch, stays):
    """4 MB for the masks of a batch, at most; one that is larger by itself may only move."""
    c = RNG.standard_normal((256, 1024)).astype("float32")

    def program(x, c):
        moved = op.reshape(x, shape=(batch, 256, 1024))
        return op.reshape(op.add(moved, c), shape=(batch * 256, 1024))

    found = kinds(program, {"x": (batch * 256, 1024), "c": c.shape}, {"c": c})
    assert ("reshape" in found) == stays


def test_a_constant_that_has_more_axes_stays():
    c = RNG.standard_normal((2, 1, 1)).astype("float32")

    def program(x, c):
        return op.reshape(op.add(op.reshape(x, shape=(1, 30)), c), shape=(2, 30))

    x = RNG.standard_normal((30,)).astype("float32")
    (found,) = selfbyoc.build(emit(program, {"x": (30,), "c": c.shape}, {"c": c}))(x)
    np.testing.assert_array_equal(found, (x.reshape(1, 30) + c).reshape(2, 30))
    assert prod(found.shape) == 60
