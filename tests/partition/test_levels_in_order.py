"""Convolutions of levels with the channels last: partitioned in the layout of kernels of bytes, bit
for bit what NumPy's integers give.
"""

import numpy as np
import pytest
from levels import bytes_of, level, window_sums

import selfbyoc
from selfbyoc import Composite, op

SCALE, OUT = 2.0**-5, 0.37  # of powers of two no float step rounds but the last
LAST = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def layer(x, weight, scale, bias, zero, dtype, *, residual=False, layout=LAST, **attrs):
    """Levels to levels, as importers of models with the channels last write it."""
    axis = layout["kernel_layout"].index("O")
    weight = op.dequantize(weight, scale, 0, axis=axis)
    y = op.bias_add(op.conv2d(op.dequantize(x, SCALE, zero), weight, **layout, **attrs), bias,
                    axis=layout["data_layout"].index("C"))  # fmt: skip
    y = op.add(y, op.dequantize(x, SCALE, zero)) if residual else y
    return op.quantize(op.relu(y), OUT, zero, out_dtype=dtype)


def constants(weight, names=("weight", "scale", "bias"), seed=3):
    """Of a weight OIHW: itself in HWIO, and a scale and a bias for each output."""
    rng = np.random.default_rng(seed)
    scale = (2.0 ** -rng.integers(5, 9, weight[0])).astype("float32")
    bias = (rng.integers(-2000, 2000, weight[0]) * scale * SCALE).astype("float32")
    arrays = bytes_of(rng, weight, "int8").transpose(2, 3, 1, 0), scale, bias
    return dict(zip(names, map(np.ascontiguousarray, arrays), strict=True))


def meaning(x, weight, scale, bias, zero, dtype, *, residual=False, **attrs):
    """The same in NumPy's integers; x and the result NHWC."""
    first = np.moveaxis(x, -1, 1)
    sums = window_sums(first, weight.transpose(3, 2, 0, 1), zero, **attrs)
    floats = sums * (scale.astype("float64") * SCALE)[:, None, None] + bias[:, None, None]
    floats = floats + (first.astype("int64") - zero) * SCALE if residual else floats
    return np.moveaxis(level(np.maximum(floats, 0), OUT, zero, dtype), 1, -1)


CASES = {
    "plain": ((1, 9, 16, 8), (16, 8, 3, 3), {"padding": 1}),
    "tail": ((2, 11, 7, 5), (7, 5, 3, 2), {}),
    "strided": ((1, 13, 9, 8), (12, 8, 3, 3), {"strides": 2, "padding": 1}),
    "dilated": ((1, 12, 11, 8), (8, 8, 3, 3), {"dilation": 2, "padding": 2}),
    "depthwise": ((1, 9, 8, 12), (12, 1, 3, 3), {"padding": 1, "groups": 12}),
    "grouped": ((1, 9, 8, 16), (8, 4, 3, 3), {"padding": 1, "groups": 4}),
    "residual": ((2, 9, 8, 8), (8, 8, 3, 3), {"padding": 1, "residual": True}),
    "one output": ((1, 5, 6, 33), (1, 33, 1, 1), {}),
    "one input": ((1, 9, 8, 1), (8, 1, 3, 3), {"padding": 1}),
    "ones": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
}


def emitted(program, shape, dtype, known):
    types = {"x": (shape, dtype), **{n: (a.shape, str(a.dtype)) for n, a in known.items()}}
    return selfbyoc.emit(program, types, known)


@pytest.mark.parametrize(("dtype", "zero"), [("uint8", 7), ("int8", -3)])
@pytest.mark.parametrize("name", CASES)
def test_channels_last(name, dtype, zero):
    shape, weight, attrs = CASES[name]
    known = constants(weight)

    def program(x, weight, scale, bias):
        return layer(x, weight, scale, bias, zero, dtype, **attrs)

    library = selfbyoc.build(emitted(program, shape, dtype, known))
    assert library.report.counts == {"conv2d_int8": 1}
    x = bytes_of(np.random.default_rng(5), shape, dtype)
    np.testing.assert_array_equal(library(x)[0], meaning(x, **known, zero=zero, dtype=dtype,
                                                         **attrs))  # fmt: skip


def network(x, w0, s0, b0, w1, s1, b1, w2, s2, b2):
    y = layer(x, w0, s0, b0, 7, "uint8", padding=1)
    y = op.max_pool2d(y, pool_size=2, strides=2, layout="NHWC")
    beside = layer(y, w1, s1, b1, 7, "uint8")
    y = op.concatenate([layer(y, w2, s2, b2, 7, "uint8", padding=1), beside], axis=3)
    return op.clip(y, a_min=9, a_max=200)


NETWORK = {
    name: array
    for n, weight in enumerate([(16, 8, 3, 3), (12, 16, 1, 1), (4, 16, 3, 3)])
    for name, array in constants(weight, (f"w{n}", f"s{n}", f"b{n}"), n).items()
}


def test_only_the_ends_of_a_network_are_transposed():
    mod = emitted(network, (2, 10, 8, 8), "uint8", NETWORK)
    library = selfbyoc.build(mod)
    assert library.report.counts["conv2d_int8"] == 3
    assert library.report.counts["max_pool2d"] == 1
    assert library.report.left["transpose"] == 2
    assert selfbyoc.explain(mod).report.layouts.startswith("0 transposes before, 2 now")
    x = bytes_of(np.random.default_rng(6), (2, 10, 8, 8), "uint8")

    def of(x, n, **attrs):
        return meaning(x, *(NETWORK[f"{name}{n}"] for name in "wsb"), 7, "uint8", **attrs)

    y = of(x, 0, padding=1).reshape(2, 5, 2, 4, 2, 16).max((2, 4))
    wanted = np.concatenate([of(y, 2, padding=1), of(y, 1)], -1).clip(9, 200)
    np.testing.assert_array_equal(library(x)[0], wanted)


def test_floats_stay_where_they_are():
    def program(x, weight):
        return op.relu(op.conv2d(x, weight, **LAST))

    mod = selfbyoc.emit(program, {"x": (1, 9, 8, 8), "weight": (3, 3, 8, 16)})
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod))
    assert (report.counts, report.layouts) == ({"conv2d_nhwc": 1}, "")


def alone(x, weight, scale):
    levels = op.dequantize(weight, scale, 0, axis=3)
    return op.conv2d(op.dequantize(x, SCALE, 7), levels, **LAST)


def test_a_composite_of_levels_with_the_channels_last_keeps_them():
    """A user's comes first, and nothing is left to move."""
    mine = Composite(
        "mine",
        lambda x, xs, xz, w, ws, wz: op.conv2d(
            op.dequantize(x, xs, xz), op.dequantize(w, ws, wz), data_layout="NHWC"
        ),
    )
    known = constants((16, 8, 3, 3))
    del known["bias"]
    mod = emitted(alone, (1, 9, 8, 8), "uint8", known)
    mine_first = [mine, *selfbyoc.BUILTIN]
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=mine_first))
    assert report.counts == {"mine": 1}
    # Without one that reads levels there is nothing to gain either.
    floats = [c for c in selfbyoc.BUILTIN if c.name == "conv2d_nhwc"]
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=floats))
    assert (report.counts, report.layouts) == ({"conv2d_nhwc": 1}, "")


def test_a_depth_that_int32_does_not_hold_stays_in_floats_and_explain_says_why():
    known = constants((1, 33_000, 1, 1))
    del known["bias"]
    mod = emitted(alone, (1, 1, 1, 33_000), "uint8", known)
    report = selfbyoc.explain(mod).report
    assert report.counts == {"conv2d": 1}
    (record,) = [r for r in report.records if r.composite == "conv2d_int8"]
    assert "33000 products" in record.reason
