"""Transposes of transposes are one or none, on both generations."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition

SHAPE = (2, 3, 5, 7)


def kinds(mod):
    graph = ir.read(partition.prepare(mod, None)["main"])
    return [call.kind for call in graph.ops]


def check(program, left):
    mod = emit(program, {"x": SHAPE})
    assert kinds(mod).count("transpose") == left
    x = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
    (found,) = selfbyoc.build(mod, cache=False)(x)
    return x, found


@pytest.mark.parametrize("second", [(0, 2, 1, 3), (0, 1, 3, 2), (3, 2, 1, 0), (1, 2, 3, 0)])
@pytest.mark.parametrize("first", [(0, 2, 1, 3), (3, 0, 1, 2), (2, 3, 0, 1)])
def test_two(first, second):
    def program(x):
        return op.relu(op.transpose(op.transpose(x, axes=first), axes=second))

    undone = [first[axis] for axis in second] == list(range(4))
    x, found = check(program, 0 if undone else 1)
    np.testing.assert_array_equal(found, np.maximum(x.transpose(first).transpose(second), 0))


def test_three():
    moves = [(0, 2, 1), (1, 0, 2), (2, 0, 1)]

    def program(x):
        x = op.reshape(x, shape=(6, 5, 7))
        for axes in moves:
            x = op.transpose(x, axes=axes)
        return op.relu(x)

    x, found = check(program, 1)
    wanted = x.reshape(6, 5, 7)
    for axes in moves:
        wanted = wanted.transpose(axes)
    np.testing.assert_array_equal(found, np.maximum(wanted, 0))


def test_what_others_read_stays():
    def program(x):
        turned = op.transpose(x, axes=(0, 2, 1, 3))
        return op.add(op.relu(turned), op.transpose(op.transpose(turned, axes=(0, 2, 1, 3)),
                                                    axes=(0, 2, 1, 3)))  # fmt: skip

    x, found = check(program, 2)  # of x both
    turned = x.transpose(0, 2, 1, 3)
    np.testing.assert_allclose(found, np.maximum(turned, 0) + turned, rtol=1e-6)
