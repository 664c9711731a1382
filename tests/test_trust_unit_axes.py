"""Axes of extent 1, where reductions, tiles and lanes have nothing to run over."""

import pytest
from anyhow import normal, taken

from selfbyoc import Composite, op

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
