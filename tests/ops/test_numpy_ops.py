"""NumPy's meaning of the ops against loops from their definitions, and against TVM's own ops."""

import itertools
import math

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.errors import UnsupportedOp
from selfbyoc.graph import OpCall, OpGraph, Value
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.ops.vocabulary import numpy_of
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.tvm import GENERATION


def random(*shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def meaning(program, **arrays):
    """What NumPy says."""
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    graph = ir.read(emit(program, types)["main"])
    return evaluate(graph, [arrays[v.name] for v in graph.inputs])[0]


def by_tvm(program, **arrays):
    """What TVM's own ops compute; nothing is partitioned."""
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    return selfbyoc.build(emit(program, types), "llvm", composites=[])(**arrays)[0]


def conv2d_by_loops(x, weight, strides, padding, dilation, groups):
    """NCHW, one product at a time."""
    (n, _, h, w), (o, per_group, kh, kw) = x.shape, weight.shape
    top, left, bottom, right = padding
    out_h = (h + top + bottom - (kh - 1) * dilation[0] - 1) // strides[0] + 1
    out_w = (w + left + right - (kw - 1) * dilation[1] - 1) // strides[1] + 1
    found = np.zeros((n, o, out_h, out_w))
    window = [range(per_group), range(kh), range(kw)]
    for at in np.ndindex(*found.shape):
        b, f, i, j = at
        first = f // (o // groups) * per_group
        for k, r, s in itertools.product(*window):
            y = i * strides[0] + r * dilation[0] - top
            z = j * strides[1] + s * dilation[1] - left
            if 0 <= y < h and 0 <= z < w:
                found[at] += float(x[b, first + k, y, z]) * float(weight[f, k, r, s])
    return found


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize(
    ("strides", "padding", "dilation", "groups"),
    [
        ((1, 1), (0, 0, 0, 0), (1, 1), 1),
        ((2, 1), (1, 0, 2, 1), (1, 1), 1),
        ((1, 2), (2, 2, 2, 2), (2, 3), 2),
        ((1, 1), (1, 1, 1, 1), (1, 1), 4),
    ],
)
def test_conv2d(strides, padding, dilation, groups, dtype):
    x, weight = random(2, 4, 8, 9, dtype=dtype), random(8, 4 // groups, 3, 2, dtype=dtype, seed=1)
    attrs = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    out = "float32" if dtype == "float32" else "int32"

    def program(x, weight):
        return op.conv2d(x, weight, out_dtype=out, **attrs)

    wanted = conv2d_by_loops(x, weight, **attrs)
    np.testing.assert_allclose(meaning(program, x=x, weight=weight), wanted, rtol=1e-12, atol=1e-12)


def test_products_of_integers_do_not_overflow():
    x, w = random(2, 7, 33, dtype="int8"), random(2, 33, 5, dtype="int8", seed=1)
    exact = x.astype("int64") @ w.astype("int64")
    assert np.abs(exact).max() > 127
    found = meaning(lambda x, w: op.batch_matmul(x, w, out_dtype="int32"), x=x, w=w)
    np.testing.assert_array_equal(found, exact)
    found = meaning(lambda x, w: op.dense(x, w, out_dtype="int32"), x=x[0], w=w[0].T)
    np.testing.assert_array_equal(found, exact[0])


@pytest.mark.parametrize("kernel_layout", ["HWIO", "OHWI"])
def test_conv2d_in_other_layouts(kernel_layout):
    x, weight = random(1, 6, 5, 3), random(4, 3, 2, 3, seed=1)
    attrs = {"strides": (1, 2), "padding": (1, 0, 0, 1), "dilation": (1, 1), "groups": 1}
    order = ["OIHW".index(axis) for axis in kernel_layout]

    def program(x, weight):
        layouts = {"data_layout": "NHWC", "kernel_layout": kernel_layout}
        return op.conv2d(x, weight, **layouts, strides=(1, 2), padding=(1, 0, 0, 1))

    found = meaning(program, x=x, weight=weight.transpose(order))
    wanted = conv2d_by_loops(x.transpose(0, 3, 1, 2), weight, **attrs).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def pool_by_loops(x, size, strides, padding, ceil_mode, of):
    """`of` the elements of each window: (value or None where there is only padding, ...)."""
    n, c, h, w = x.shape
    top, left, bottom, right = padding
    around = math.ceil if ceil_mode else math.floor
    out_h = around((h + top + bottom - size[0]) / strides[0]) + 1
    out_w = around((w + left + right - size[1]) / strides[1]) + 1
    found = np.zeros((n, c, out_h, out_w))
    for b, k, i, j in np.ndindex(*found.shape):
        window = []
        for r, s in itertools.product(range(size[0]), range(size[1])):
            y, z = i * strides[0] + r - top, j * strides[1] + s - left
            inside = 0 <= y < h and 0 <= z < w
            padded = -top <= y < h + bottom and -left <= z < w + right
            if inside or padded:
                window.append(float(x[b, k, y, z]) if inside else None)
        found[b, k, i, j] = of(window)
    return found


def _largest(window):
    return max(v for v in window if v is not None)


def _mean_inside(window):
    inside = [v for v in window if v is not None]
    return sum(inside) / len(inside)


def _mean_of_all(window):
    return sum(v or 0.0 for v in window) / len(window)


POOLS = [
    ((2, 2), (2, 2), (0, 0, 0, 0), False),
    ((3, 3), (2, 2), (1, 1, 1, 1), False),
    ((3, 2), (2, 1), (1, 0, 0, 1), False),
    ((3, 3), (2, 2), (0, 0, 0, 0), True),
    ((2, 3), (2, 2), (1, 1, 1, 1), True),
]


@pytest.mark.parametrize(("size", "strides", "padding", "ceil_mode"), POOLS)
def test_max_pool2d(size, strides, padding, ceil_mode):
    attrs = {"pool_size": size, "strides": strides, "padding": padding, "ceil_mode": ceil_mode}
    x = random(2, 3, 8, 10) - 5  # below zero: padding must not win
    found = meaning(lambda x: op.max_pool2d(x, **attrs), x=x)
    np.testing.assert_array_equal(
        found, pool_by_loops(x, size, strides, padding, ceil_mode, _largest)
    )
    np.testing.assert_array_equal(found, by_tvm(lambda x: op.max_pool2d(x, **attrs), x=x))


@pytest.mark.parametrize("all_of_it", [False, True])
@pytest.mark.parametrize(("size", "strides", "padding", "ceil_mode"), POOLS)
def test_avg_pool2d(size, strides, padding, ceil_mode, all_of_it):
    attrs = {"pool_size": size, "strides": strides, "padding": padding, "ceil_mode": ceil_mode}
    attrs["count_include_pad"] = all_of_it
    x = random(2, 3, 8, 10)
    found = meaning(lambda x: op.avg_pool2d(x, **attrs), x=x)
    of = _mean_of_all if all_of_it else _mean_inside
    wanted = pool_by_loops(x, size, strides, padding, ceil_mode, of)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        found, by_tvm(lambda x: op.avg_pool2d(x, **attrs), x=x), rtol=1e-5, atol=1e-6
    )


def test_global_avg_pool2d():
    x = random(2, 3, 5, 7)
    wanted = [[[[sum(map(float, x[b, c].ravel())) / 35]] for c in range(3)] for b in range(2)]
    np.testing.assert_allclose(meaning(lambda x: op.global_avg_pool2d(x), x=x), wanted, rtol=1e-12)


def test_softmax_and_layer_norm():
    x, gamma, beta = random(3, 7), random(7, seed=1), random(7, seed=2)
    for row, found in zip(x, meaning(lambda x: op.softmax(x), x=x), strict=True):
        powers = [math.exp(v) for v in row]
        np.testing.assert_allclose(found, [p / sum(powers) for p in powers], rtol=1e-12)
    normal = meaning(
        lambda x, gamma, beta: op.layer_norm(x, gamma, beta, epsilon=0.1),
        x=x,
        gamma=gamma,
        beta=beta,
    )
    for row, found in zip(x.astype("float64"), normal, strict=True):
        mean = sum(row) / 7
        deviation = math.sqrt(sum((v - mean) ** 2 for v in row) / 7 + 0.1)
        wanted = [(v - mean) / deviation * g + b for v, g, b in zip(row, gamma, beta, strict=True)]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
def test_batch_matmul(turn_a, turn_b):
    a, b = random(2, 3, 4), random(2, 4, 5, seed=1)
    wanted = [
        [
            [sum(p * q for p, q in zip(row, column, strict=True)) for column in right.T]
            for row in left
        ]
        for left, right in zip(a.tolist(), b.astype("float64"), strict=True)
    ]
    data = {"a": a.swapaxes(1, 2) if turn_a else a, "b": b.swapaxes(1, 2) if turn_b else b}
    found = meaning(
        lambda a, b: op.batch_matmul(a, b, transpose_a=turn_a, transpose_b=turn_b), **data
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(GENERATION == "relax", reason="Relax has no lrn")
def test_lrn():
    x = random(1, 6, 2, 2)
    attrs = {"size": 3, "axis": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75}
    found = meaning(lambda x: op.lrn(x, **attrs), x=x)
    for c in range(6):
        near = sum(float(v) ** 2 for v in x[0, max(0, c - 1) : c + 2, 1, 0])
        wanted = x[0, c, 1, 0] / (2.0 + 0.5 * near / 3) ** 0.75
        np.testing.assert_allclose(found[0, c, 1, 0], wanted, rtol=1e-6)


PROGRAMS = {
    "bias along channels": lambda x: op.bias_add(
        op.transpose(x, axes=(0, 2, 1)), op.sum(x, axis=(0, 1))
    ),
    "clip": lambda x: op.clip(x, a_min=-0.5, a_max=0.25),
    "concatenate": lambda x: op.concatenate([x, op.negative(x)], axis=1),
    "gelu": lambda x: op.gelu(x),
    "hard swish": lambda x: op.hard_swish(op.multiply(x, 4.0)),
    "leaky": lambda x: op.leaky_relu(x, alpha=0.1),
    "log": lambda x: op.log(op.add(op.abs(x), 1.0)),
    "max": lambda x: op.max(x, axis=1, keepdims=True),
    "mean": lambda x: op.mean(x, axis=(0, 2)),
    "power": lambda x: op.power(op.abs(x), 1.5),
    "reshape": lambda x: op.reshape(x, shape=(6, 5)),
    "round": lambda x: op.round(op.divide(op.round(op.multiply(x, 8.0)), 4.0)),
    "rsqrt": lambda x: op.rsqrt(op.add(op.multiply(x, x), 1.0)),
    "silu": lambda x: op.silu(x),
    "sum": lambda x: op.sum(x, axis=None, keepdims=False),
    "tanh": lambda x: op.maximum(op.tanh(x), op.sigmoid(x)),
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_as_tvm_computes_it(name):
    program, x = PROGRAMS[name], random(2, 3, 5)
    np.testing.assert_allclose(meaning(program, x=x), by_tvm(program, x=x), rtol=1e-5, atol=1e-6)


def test_integers_stay_integers():
    x = random(4, 9, dtype="int32")
    found = meaning(lambda x: op.cast(op.right_shift(x, 3), dtype="int8"), x=x)
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, (x // 8).astype("int8"))


def test_an_unknown_op_names_those_that_are_known():
    x, y = Value((2,), "float32", "x"), Value((2,), "float32", "y")
    graph = OpGraph((x,), (OpCall("fft", (x,), {}, (y,), "fft"),), (y,))
    with pytest.raises(UnsupportedOp, match=r"fft: no NumPy meaning of 'fft'; known: \['abs'"):
        evaluate(graph, [np.zeros(2, "float32")])
    assert numpy_of("conv2d")


@pytest.mark.parametrize(("inputs", "out"), [("float32", "int32"), ("int8", "float32")])
@pytest.mark.parametrize("kind", ["conv2d", "dense", "batch_matmul"])
def test_a_product_multiplies_in_its_out_dtype(kind, inputs, out):
    shapes = {"conv2d": ((1, 3, 7, 5), (4, 3, 3, 3)), "dense": ((5, 7), (3, 7))}
    x, weight = (
        (3 * random(*shape, dtype=inputs, seed=n)).astype(inputs)
        for n, shape in enumerate(shapes.get(kind, ((2, 5, 7), (2, 7, 3))))
    )

    def product(x, weight):
        return getattr(op, kind)(x, weight, out_dtype=out)

    found, expected = meaning(product, x=x, weight=weight), by_tvm(product, x=x, weight=weight)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.abs(found).max() > 1
