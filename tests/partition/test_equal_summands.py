"""The sum of two equal results, of which Relay computes one."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op


def pool(x):
    return op.max_pool2d(x, pool_size=(2, 2))


def transposed(x, w):
    return op.conv2d_transpose(x, w)


def twice_pooled(x):
    return op.add(pool(x), pool(x))


def twice_transposed(x, w):
    return op.add(transposed(x, w), transposed(x, w))


def result(program, arrays):
    """What a program makes of arrays, and its report."""
    types = {name: array.shape for name, array in arrays.items()}
    library = selfbyoc.build(selfbyoc.emit(program, types), cache=False)
    return library(**arrays)[0], library.report


@pytest.mark.parametrize(
    ("program", "one", "shapes"),
    [
        (twice_pooled, pool, {"x": (1, 2, 6, 5)}),
        (twice_transposed, transposed, {"x": (1, 2, 5, 4), "w": (2, 3, 3, 3)}),
    ],
    ids=["max_pool2d", "conv2d_transpose"],
)
def test_equal_results_added(program, one, shapes):
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(shape).astype("float32") for n, shape in shapes.items()}
    found, report = result(program, arrays)
    wanted, alone = result(one, arrays)
    assert set(alone.counts) <= set(report.counts)
    np.testing.assert_allclose(found, 2 * wanted, rtol=1e-6)


def test_another_of_the_same_kind():
    """Its function is not taken for that of the two, nor its sizes."""

    def program(x, y):
        wide = op.global_avg_pool2d(pool(y))
        return op.multiply(wide, twice_pooled(x))

    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((1, 3, n, n)).astype("float32") for n in (6, 14))
    types = {"x": x.shape, "y": y.shape}
    mod = selfbyoc.partition_for_tefuse(selfbyoc.emit(program, types))
    pools = [r for r in selfbyoc.report(mod).matched if r.composite == "max_pool2d"]
    of_y, *of_x = (r.symbol for r in pools)
    assert len(of_x) == 2
    assert of_y not in of_x
    found = selfbyoc.build(mod)(x=x, y=y)[0]
    views = np.lib.stride_tricks.sliding_window_view
    pooled = [views(a, (2, 2), axis=(2, 3)).max(axis=(4, 5)) for a in (x, y)]
    wanted = 2 * pooled[0] * pooled[1].mean(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
