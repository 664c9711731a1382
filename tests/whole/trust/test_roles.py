"""One value in two roles: data that is also the weight, a weight that is also the residual."""

import numpy as np
import pytest
from against_numpy import normal, taken
from packing import dense as packing_dense

from selfbyoc import op


def relu_dense(x, w):
    return op.relu(op.dense(x, w))


def padded(x, w):
    return op.conv2d(x, w, padding=1)


def normalised(x, gamma, beta):
    return op.layer_norm(x, gamma, beta, axis=-1, epsilon=1e-5)


def two_products(x, w, b):
    return op.bias_add(op.dense(op.gelu(op.bias_add(op.dense(x, w), b, axis=-1)), w), b, axis=-1)


def of_itself(x):
    return op.batch_matmul(op.softmax(op.batch_matmul(x, x, transpose_b=True)), x)


def beside(x, w, a, b):
    """Two branches with one weight."""
    return op.concatenate([op.bias_add(op.conv2d(x, w), a), op.bias_add(op.conv2d(x, w), b)])


def batch_normed(x, w, g):
    return op.relu(op.batch_norm(padded(x, w), g, g, g, g)[0])


def doubled(y):
    return op.add(y, y)


MATRIX, IMAGES = (8, 8), (3, 3, 3, 3)
PROGRAMS = {
    "data and weight": ("dense", lambda x: op.dense(x, x), {"x": MATRIX}),
    "data, weight and residual": ("dense", lambda x: op.add(relu_dense(x, x), x), {"x": MATRIX}),
    "data and residual": (
        "dense",
        lambda x, w: op.add(relu_dense(x, w), x),
        {"x": MATRIX, "w": MATRIX},
    ),
    "weight and residual": (
        "dense",
        lambda x, w: op.add(w, op.dense(x, w)),
        {"x": MATRIX, "w": MATRIX},
    ),
    "weight and bias": (
        "dense",
        lambda x, w: op.bias_add(op.dense(x, w), op.reshape(w, shape=(8,))),
        {"x": (3, 1), "w": (8, 1)},
    ),
    "images and filters": ("conv2d", lambda x: padded(x, x), {"x": IMAGES}),
    "images, filters and residual": (
        "conv2d_add",
        lambda x: op.add(padded(x, x), x),
        {"x": IMAGES},
    ),
    "filters and residual": (
        "conv2d_add",
        lambda x, w: op.relu(op.add(padded(x, w), w)),
        {"x": IMAGES, "w": IMAGES},
    ),
    "filters and filters": (
        "conv2d_relu_conv2d_relu",
        lambda x, w: op.relu(padded(op.relu(padded(x, w)), w)),
        {"x": (1, 8, 8, 8), "w": (8, 8, 3, 3)},
    ),
    "weight and weight": ("dense_gelu_dense", two_products, {"x": (5, 16), "w": (16, 16), "b": 16}),
    "gamma and beta": (
        "layer_norm",
        lambda x, g: normalised(x, g, g),
        {"x": (5, 16), "g": 16},
    ),
    "rows and weight": (
        "layer_norm_dense",
        lambda x, g: op.bias_add(op.dense(normalised(x, g, g), x), g, axis=-1),
        {"x": (16, 16), "g": 16},
    ),
    "queries, keys and values": ("attention", of_itself, {"x": (2, 9, 16)}),
    "one weight for two branches": (
        "parallel_conv2d",
        beside,
        {"x": (1, 8, 6, 6), "w": (16, 8, 1, 1), "a": 16, "b": 16},
    ),
    "result and residual": (
        "dense",
        lambda x, w: doubled(op.dense(x, w)),
        {"x": (2, 5, 16), "w": (9, 16)},
    ),
    "result and residual of a convolution": (
        "conv2d",
        lambda x, w: op.relu(doubled(padded(x, w))),
        {"x": IMAGES, "w": IMAGES},
    ),
    "a vector that is reshaped to all of a convolution's result": (
        "conv2d_add",
        lambda x, w, r: op.add(op.reshape(r, shape=(3, 4, 3, 3)), padded(x, w)),
        {"x": IMAGES, "w": (4, 3, 3, 3), "r": 108},
    ),
    "a vector that is reshaped to all of a product": (
        "dense",
        lambda x, w, r: op.add(op.dense(x, w), op.reshape(r, shape=(5, 9))),
        {"x": (5, 16), "w": (9, 16), "r": 45},
    ),
    "a vector that is reshaped to all of a transposed convolution's result": (
        "conv2d_transpose",
        lambda x, w, r: op.add(
            op.reshape(r, shape=(3, 4, 7, 7)), op.conv2d_transpose(x, w, strides=2)
        ),
        {"x": IMAGES, "w": (3, 4, 3, 3), "r": 588},
    ),
    "all of a batch norm": (
        "conv2d_batch_norm_relu",
        batch_normed,
        {"x": (1, 3, 8, 8), "w": (4, 3, 3, 3), "g": 4},
    ),
}


@pytest.mark.parametrize("constant", [False, True], ids=["inputs", "constants"])
@pytest.mark.parametrize("case", PROGRAMS)
def test_right(case, constant):
    composite, program, shapes = PROGRAMS[case]
    arrays = {n: normal(*np.atleast_1d(s), seed=len(n)) for n, s in shapes.items()}
    if "g" in arrays:
        arrays["g"] = np.abs(arrays["g"]) + 0.1
    weights = [n for n in arrays if constant and n != "x"]
    args = {n: a for n, a in arrays.items() if n not in weights}
    assert taken(program, args, {n: arrays[n] for n in weights}) == {composite: 1}


@pytest.mark.parametrize("constant", [False, True], ids=["inputs", "constants"])
def test_a_packing_of_a_users(constant):
    def program(x, w):
        return op.add(op.dense(x, w), op.dense(w, x))

    x, w = {"x": normal(16, 16)}, {"w": normal(16, 16, seed=1)}
    options = {"composites": [packing_dense]}
    counts = taken(program, x, w, **options) if constant else taken(program, {**x, **w}, **options)
    assert counts == {packing_dense.name: 2}
