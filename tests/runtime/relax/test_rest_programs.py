"""Ops that no composite takes, as TVM lowers them, under our default schedule: every kind of loop
nest, with tails, axes of one element and other dtypes; none is left as it was.
"""

import numpy as np
import pytest
from tvm import relax

import selfbyoc

o = relax.op


def built(program, **inputs):
    """The library of a function of relax ops."""
    builder = relax.BlockBuilder()
    params = [
        relax.Var(name, relax.TensorType(list(a.shape), str(a.dtype))) for name, a in inputs.items()
    ]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(program(*params))
        builder.emit_func_output(result)
    return selfbyoc.build(builder.get(), composites=[])


def floats(*shape, dtype="float32"):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def integers(*shape, dtype="int32", most=9):
    return np.random.default_rng(len(shape)).integers(-most, most, shape).astype(dtype)


def indices(*shape, most):
    return np.random.default_rng(0).integers(0, most, shape).astype("int64")


def shuffled(x):
    n, c, h, w = x.shape
    return x.reshape(n, 2, c // 2, h, w).swapaxes(1, 2).reshape(x.shape)


def convolved(x, w, stride):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2], axis=2)[:, :, ::stride]
    return np.einsum("nclk,ock->nol", windows, w)


def grouped(x, w, groups):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum("ncyxkl,ockl->noyx", a, b) for a, b in parts], 1)


def normal(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


ONES = np.ones(6, "float32")
PROGRAMS = {
    "channel scale": (lambda x, s: o.nn.relu(o.multiply(x, s)),
                      lambda x, s: np.maximum(x * s, 0), floats(2, 5, 7, 7), floats(1, 5, 1, 1)),
    "prime rows": (lambda x, y: o.add(x, y), lambda x, y: x + y, floats(3, 197), floats(1, 197)),
    "one row": (lambda x: o.multiply(x, x), lambda x: x * x, floats(9001)),
    "one element": (lambda x: o.add(x, x), lambda x: x + x, floats(1)),
    "no axes": (lambda x: o.add(x, x), lambda x: x + x, floats()),
    "units": (lambda x: o.add(x, x), lambda x: x + x, floats(3, 67, 1, 1)),
    "float16": (lambda x, y: o.nn.relu(o.add(x, y)), lambda x, y: np.maximum(x + y, 0),
                floats(3, 77, dtype="float16"), floats(3, 77, dtype="float16")),
    "float64": (lambda x: o.sum(x, [-1]), lambda x: x.sum(-1), floats(3, 77, dtype="float64")),
    "int8": (lambda x, y: o.add(o.astype(x, "int32"), o.astype(y, "int32")),
             lambda x, y: x.astype("int32") + y,
             integers(5, 77, dtype="int8"), integers(5, 77, dtype="int8")),
    "int64": (lambda x: o.multiply(x, x), lambda x: x * x,
              integers(4, 41, dtype="int64", most=1 << 31)),
    "int64 inside": (
        lambda x: o.astype(o.floor_divide(o.multiply(o.astype(x, "int64"), o.astype(x, "int64")),
                                          relax.const(1 << 20, "int64")), "int32"),
        lambda x: (x.astype("int64") ** 2 >> 20).astype("int32"),
        integers(4, 41, most=1 << 24)),
    "int64 sums": (lambda x: o.sum(x, [-1]), lambda x: x.sum(-1),
                   integers(4, 77, dtype="int64", most=1 << 40)),
    "bool": (lambda x, y: o.where(o.less(x, y), x, y), np.minimum, floats(5, 77), floats(5, 77)),
    "compared": (lambda x, y: o.less(x, y), np.less, floats(3, 130), floats(3, 130)),
    "row sums": (lambda x: o.sum(x, [-1]), lambda x: x.sum(-1), floats(7, 197)),
    "row maxima": (lambda x: o.max(x, [-1], True), lambda x: x.max(-1, keepdims=True),
                   floats(3, 5, 99)),
    "row means of images": (lambda x: o.mean(x, [2, 3]), lambda x: x.mean((2, 3)),
                            floats(2, 5, 7, 7)),
    "whole sum": (lambda x: o.sum(x), np.sum, floats(13, 77)),
    "int row sums": (lambda x: o.sum(x, [-1]), lambda x: x.sum(-1, dtype="int32"),
                     integers(3, 77)),
    "column sums": (lambda x: o.sum(x, [0]), lambda x: x.sum(0), floats(13, 77)),
    "a window as large as its image": (lambda x: o.nn.adaptive_avg_pool2d(x, (1, 1)),
                                       lambda x: x.mean((2, 3), keepdims=True),
                                       floats(2, 5, 6, 9)),
    "softmax": (lambda x: o.nn.softmax(x),
                lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), floats(3, 5, 97)),
    "log softmax": (lambda x: o.nn.log_softmax(x),
                    lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)), floats(3, 97)),
    "argmax": (lambda x: o.argmax(x, -1), lambda x: x.argmax(-1), floats(3, 97)),
    "argmax over channels": (lambda x: o.argmax(x, 1), lambda x: x.argmax(1), floats(2, 5, 7, 9)),
    "group norm": (lambda x, g, b: o.nn.group_norm(x, g, b, 3, 1, [2, 3]),
                   lambda x, g, b: normal(x.reshape(2, 3, 2, 5, 7), (2, 3, 4)).reshape(x.shape),
                   floats(2, 6, 5, 7), ONES, 0 * ONES),
    "instance norm": (lambda x, g, b: o.nn.instance_norm(x, g, b, 1, [2, 3]),
                      lambda x, g, b: normal(x, (2, 3)), floats(2, 6, 5, 7), ONES, 0 * ONES),
    "rms norm": (lambda x, g: o.nn.rms_norm(x, g, [-1]),
                 lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g,
                 floats(3, 5, 37), floats(37)),
    "channel shuffle": (
        lambda x: o.reshape(o.permute_dims(o.reshape(x, (2, 2, 3, 5, 7)), [0, 2, 1, 3, 4]),
                            (2, 6, 5, 7)), shuffled, floats(2, 6, 5, 7)),
    "parts": (lambda x: o.concat([o.nn.relu(o.split(x, 3, 1)[2]), o.split(x, 3, 1)[0]], 1),
              lambda x: np.concatenate([np.maximum(x[:, 4:], 0), x[:, :2]], 1),
              floats(2, 6, 5, 7)),
    "resize": (lambda x: o.image.resize2d(x, (10, 14), method="nearest_neighbor",
                                          coordinate_transformation_mode="asymmetric",
                                          rounding_method="floor"),
               lambda x: x.repeat(2, 2).repeat(2, 3), floats(2, 3, 5, 7)),
    "padding": (lambda x: o.nn.pad(x, [0, 0, 1, 2]), lambda x: np.pad(x, ((0, 0), (1, 2))),
                floats(3, 33)),
    "reversed": (lambda x: o.flip(x, -1), lambda x: x[:, ::-1], floats(3, 33)),
    "rows of a table": (lambda t, i: o.take(t, i, 0), lambda t, i: t[i],
                        floats(50, 33), indices(2, 7, most=50)),
    "columns of a table": (lambda t, i: o.take(t, i, 1), lambda t, i: t[:, i],
                           floats(3, 50), indices(19, most=50)),
    "1-d convolution": (lambda x, w: o.nn.conv1d(x, w), lambda x, w: convolved(x, w, 1),
                        floats(2, 5, 51), floats(7, 5, 3)),
    "1-d strided": (lambda x, w: o.nn.conv1d(x, w, 2), lambda x, w: convolved(x, w, 2),
                    floats(1, 5, 50), floats(7, 5, 3)),
    "groups": (lambda x, w: o.nn.conv2d(x, w, groups=3), lambda x, w: grouped(x, w, 3),
               floats(1, 6, 9, 30), floats(12, 2, 3, 3)),
    "product with tails": (lambda x, w: o.matmul(x, w), np.matmul,
                           floats(3, 21, 33), floats(3, 33, 49)),
    "vector": (lambda x, w: o.matmul(x, w), np.matmul, floats(3, 133), floats(133, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_and_scheduled(name):
    program, meaning, *arrays = PROGRAMS[name]
    inputs = {f"x{n}": a for n, a in enumerate(arrays)}
    library = built(program, **inputs)
    assert library.unscheduled == {}
    found, expected = library(*arrays)[0], np.asarray(meaning(*arrays))
    assert found.shape == expected.shape
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected)
    else:
        close = 2e-3 if found.dtype == "float16" else 2e-5
        np.testing.assert_allclose(found, expected, rtol=close, atol=close)
