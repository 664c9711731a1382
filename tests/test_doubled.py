"""The sum of two equal results, of which Relay computes one."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc._tvm import GENERATION


def pool(x):
    return op.max_pool2d(x, pool_size=(2, 2))


def transposed(x, w):
    return op.conv2d_transpose(x, w)


@pytest.mark.parametrize(
    ("kernel", "shapes"),
    [(pool, [(1, 2, 6, 5)]), (transposed, [(1, 2, 5, 4), (2, 3, 3, 3)])],
    ids=["max_pool2d", "conv2d_transpose"],
)
def test_equal_results_added(kernel, shapes):
    names = ["x", "w"][: len(shapes)]
    types = dict(zip(names, shapes, strict=True))

    def program(*args):
        return op.add(kernel(*args), kernel(*args))

    programs = {1: lambda x: program(x), 2: lambda x, w: program(x, w)}
    alone = {1: lambda x: kernel(x), 2: lambda x, w: kernel(x, w)}
    mod, one = (selfbyoc.emit(made[len(shapes)], types) for made in (programs, alone))
    library, other = selfbyoc.build(mod, cache=False), selfbyoc.build(one, cache=False)
    assert sum(library.report.counts.values()) >= (2 if GENERATION == "relay" else 1)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    np.testing.assert_allclose(library(*given)[0], 2 * other(*given)[0], rtol=1e-6)
