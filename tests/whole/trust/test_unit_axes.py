"""Axes of extent 1, where reductions, tiles and lanes have nothing to run over."""

import inspect

import pytest
from against_numpy import normal, taken

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.tvm import GENERATION

IMAGES = [
    (1, 200, 1, 48),
    (2, 32, 1, 40),
    (2, 3, 48, 1),
    (1, 1, 1, 64),
    (1, 1, 1, 1),
    (1, 1, 16, 16),
    (2, 3, 1, 7),
]


@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_global_average(shape):
    counts = taken(lambda x: op.global_avg_pool2d(x), {"x": normal(*shape)})
    assert counts == {"global_avg_pool2d": 1}


@pytest.mark.parametrize("shape", [(1, 16, 48), (3, 1, 48), (3, 16, 1)], ids=str)
@pytest.mark.parametrize("axis", [(0, 1), (1, 2), (0, 1, 2)], ids=str)
def test_the_default_schedule(axis, shape):
    """A reduction that has no schedule of its own, over axes some of which have one element."""

    def program(x):
        return op.relu(op.sum(x, axis=axis, keepdims=True))

    composite = Composite("summed", program)
    assert taken(program, {"x": normal(*shape)}, composites=[composite]) == {"summed": 1}


def attended(q, k, v):
    return op.batch_matmul(op.softmax(op.batch_matmul(q, k, transpose_b=True)), v)


NONE, RELAX, BOTH = (), ("relax",), ("relax", "relay")
# A program, the extents of its inputs, the TVMs that build what NumPy knows, too
EMPTY = {
    "dense": (lambda x, w: op.relu(op.dense(x, w)), [(0, 8), (4, 8)], RELAX),
    "a sum of nothing": (lambda x, w: op.relu(op.dense(x, w)), [(3, 0), (4, 0)], RELAX),
    "no channels": (lambda x, w: op.conv2d(x, w), [(1, 0, 5, 5), (4, 0, 3, 3)], RELAX),
    "layer_norm": (lambda x, g, b: op.layer_norm(x, g, b), [(0, 8), (8,), (8,)], BOTH),
    "conv2d": (lambda x, w: op.relu(op.conv2d(x, w)), [(0, 3, 8, 8), (4, 3, 3, 3)], BOTH),
    "no queries": (attended, [(2, 0, 8), (2, 4, 8), (2, 4, 8)], RELAX),
    "no keys": (attended, [(2, 3, 8), (2, 0, 8), (2, 0, 8)], NONE),
    "a window that is too large": (lambda x: op.avg_pool2d(x, pool_size=8), [(1, 1, 7, 7)], NONE),
}


@pytest.mark.parametrize("name", EMPTY)
def test_what_is_empty_is_left_to_tvm(name):
    program, shapes, builds = EMPTY[name]
    args = dict(zip(inspect.signature(program).parameters, shapes, strict=True))
    parted = selfbyoc.partition_for_tefuse(selfbyoc.emit(program, args))
    assert selfbyoc.report(parted).counts == {}
    assert any("is empty: float32" in r.reason for r in selfbyoc.report(parted).records)
    if GENERATION in builds:
        assert taken(program, {n: normal(*shape) for n, shape in args.items()}) == {}
