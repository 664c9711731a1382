"""Convolutions of the same image that are added up are one, on both generations."""

import itertools

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition

CHANNELS = 6
IMAGE = (2, CHANNELS, 9, 8)


def counted(program, arrays, x):
    """Convolutions that are left, after the results were compared with the program as it is."""
    shapes = {"x": x.shape} | {name: array.shape for name, array in arrays.items()}
    mod = emit(program, shapes, arrays)
    library = selfbyoc.build(mod, cache=False)
    given = emit(program, shapes)  # of weights that are inputs nothing is summed
    expected = selfbyoc.build(given, composites=[], cache=False)(x, *arrays.values())
    np.testing.assert_allclose(library(x)[0], expected[0], rtol=1e-5, atol=1e-5)
    assert sum(library.report.counts.values()) >= 1
    graph = ir.read(partition.prepare(mod, None)["main"])
    return sum(each.kind == "conv2d" for each in graph.ops)


def two(shapes, first, other):
    """A sum of two convolutions of `x`, each with a bias."""

    def program(x, v, w, a, b):
        y = op.bias_add(op.conv2d(x, v, **first), a)
        return op.relu(op.add(y, op.bias_add(op.conv2d(x, w, **other), b)))

    rng = np.random.default_rng(0)
    arrays = {"v": shapes[0], "w": shapes[1], "a": shapes[0][:1], "b": shapes[1][:1]}
    arrays = {n: rng.standard_normal(shape).astype("float32") for n, shape in arrays.items()}
    return program, arrays, rng.standard_normal(IMAGE).astype("float32")


SUMS = {
    "equal": (((5, 6, 1, 1), (5, 6, 1, 1)), {}, {}),
    "a tap": (((5, 6, 1, 1), (5, 6, 3, 3)), {}, {"padding": 1}),
    "stride": (((5, 6, 3, 3), (5, 6, 1, 1)), {"padding": 1, "strides": 2}, {"strides": 2}),
    "rows": (((5, 6, 3, 3), (5, 6, 3, 1)), {"padding": 1}, {"padding": (1, 0)}),
    "dilated": (((5, 6, 3, 3), (5, 6, 1, 1)), {"padding": 2, "dilation": 2}, {}),
    "depthwise": (
        ((6, 1, 5, 5), (6, 1, 3, 3)), {"padding": 2, "groups": 6}, {"padding": 1, "groups": 6},
    ),
}  # fmt: skip
APART = {
    "crossed": (((5, 6, 3, 1), (5, 6, 1, 3)), {"padding": (1, 0)}, {"padding": (0, 1)}),
    "groups": (((6, 1, 3, 3), (6, 6, 1, 1)), {"padding": 1, "groups": 6}, {}),
    "dilation": (((5, 6, 5, 5), (5, 6, 3, 3)), {"padding": 2}, {"padding": 2, "dilation": 2}),
    "broadcast": (((5, 6, 9, 8), (5, 6, 1, 1)), {}, {}),
}


@pytest.mark.parametrize("name", SUMS)
def test_one_convolution(name):
    assert counted(*two(*SUMS[name])) == 1


@pytest.mark.parametrize("name", APART)
def test_what_is_no_sum_of_weights_stays(name):
    assert counted(*two(*APART[name])) == 2


@pytest.mark.parametrize("groups", [1, 2, CHANNELS])
def test_branches_with_norms_and_that_of_the_image(groups):
    """As RepVGG and MobileOne are trained."""

    def program(x, v, w, g0, b0, m0, v0, g1, b1, m1, v1, g2, b2, m2, v2):
        wide = op.batch_norm(op.conv2d(x, v, padding=1, groups=groups), g0, b0, m0, v0)[0]
        point = op.batch_norm(op.conv2d(x, w, groups=groups), g1, b1, m1, v1)[0]
        plain = op.batch_norm(x, g2, b2, m2, v2)[0]
        return op.relu(op.add(plain, op.add(wide, point)))

    rng = np.random.default_rng(1)
    arrays = {
        "v": rng.standard_normal((CHANNELS, CHANNELS // groups, 3, 3)).astype("float32"),
        "w": rng.standard_normal((CHANNELS, CHANNELS // groups, 1, 1)).astype("float32"),
    }
    for n, each in itertools.product(range(3), "gbmv"):
        drawn = rng.uniform(0.5, 1.5, CHANNELS) if each == "v" else rng.standard_normal(CHANNELS)
        arrays[f"{each}{n}"] = drawn.astype("float32")
    assert counted(program, arrays, rng.standard_normal(IMAGE).astype("float32")) == 1


def test_another_image_stays():
    def program(x, v, w):
        return op.add(op.conv2d(x, v), op.conv2d(op.relu(x), w))

    rng = np.random.default_rng(2)
    arrays = {n: rng.standard_normal((6, 6, 1, 1)).astype("float32") for n in ("v", "w")}
    assert counted(program, arrays, rng.standard_normal(IMAGE).astype("float32")) == 2
