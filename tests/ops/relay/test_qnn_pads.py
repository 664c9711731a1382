"""Pads before convolutions of levels: by the zero point they are the convolution's own, by another
level the padding of the kernel holds that; bit for bit what TVM gives alone.
"""

import numpy as np
import pytest
from levels import bytes_of
from qnn_models import alone
from tvm import relay

import selfbyoc
from selfbyoc.tvm import tvm

qnn, F32 = relay.qnn.op, "float32"
ZERO = 3
LAYERS = {  # x NCHW, weight OIHW, groups, stride
    "3x3": ((1, 16, 13, 11), (24, 16, 3, 3), 1, 1),
    "winograd": ((1, 32, 28, 28), (32, 32, 3, 3), 1, 1),
    "strided": ((2, 5, 12, 9), (7, 5, 3, 2), 1, 2),
    "1x1": ((1, 8, 7, 9), (9, 8, 1, 1), 1, 1),
    "depthwise": ((1, 12, 15, 14), (12, 1, 3, 3), 12, 1),
    "grouped": ((1, 24, 9, 12), (20, 6, 3, 3), 4, 1),
    "one-input": ((1, 1, 9, 8), (5, 1, 3, 3), 1, 1),
}


def number(value, dtype="int32"):
    return relay.const(np.asarray(value, dtype))


def layer(name, value, *, dtype="uint8", last=False, own=0, sides=((1, 2), (0, 1))):
    """main's parameter, and the sums of what is padded by a value."""
    shape, weight, groups, stride = LAYERS[name]
    taps = bytes_of(np.random.default_rng(3), weight, "int8")
    widths, layouts = [(0, 0), (0, 0), *sides], {}
    if last:
        shape, widths = (shape[0], *shape[2:], shape[1]), [(0, 0), *sides, (0, 0)]
        taps = taps.transpose(2, 3, 0, 1) if groups > 1 else taps.transpose(2, 3, 1, 0)
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWOI" if groups > 1 else "HWIO"}
    x = relay.var("x", shape=shape, dtype=dtype)
    sums = qnn.conv2d(
        relay.nn.pad(x, widths, value), number(np.ascontiguousarray(taps), "int8"), number(ZERO),
        number(0), number(0.03, F32), number(0.005, F32), kernel_size=weight[2:],
        channels=weight[0], strides=(stride, stride), groups=groups, padding=(own,) * 4, **layouts,
    )  # fmt: skip
    return x, shape, sums


def requantised(sums, last):
    return qnn.requantize(
        sums, number(0.0031, F32), number(0), number(1, F32), number(5), axis=3 if last else 1,
        out_dtype="uint8", rounding="UPWARD", compute_dtype="int64",
    )  # fmt: skip


def checked(x, shape, y, counts, left=()):
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    library = selfbyoc.build(mod)
    assert library.report.counts == counts
    assert set(library.report.left) == set(left)
    given = bytes_of(np.random.default_rng(5), shape, str(x.type_annotation.dtype))
    np.testing.assert_array_equal(library(given)[0], alone(mod, x=given))


@pytest.mark.parametrize("value", [ZERO, 0, 200])
@pytest.mark.parametrize("name", LAYERS)
def test_requantised(name, value):
    """In one kernel, whatever it is padded by."""
    x, shape, sums = layer(name, value)
    checked(x, shape, requantised(sums, last=False), {"conv2d_narrowed": 1})


@pytest.mark.parametrize("value", [ZERO, -100])
@pytest.mark.parametrize("name", ["3x3", "depthwise"])
def test_with_signs_and_channels_last(name, value):
    x, shape, sums = layer(name, value, dtype="int8", last=True)
    checked(x, shape, requantised(sums, last=True), {"conv2d_narrowed": 1}, ["transpose"])


@pytest.mark.parametrize("name", ["strided", "depthwise"])
def test_dequantised(name):
    """The zero point is what a kernel of levels has around the image; another value stays."""
    for value, left in ((ZERO, []), (4, ["nn.pad"])):
        x, shape, sums = layer(name, value)
        y = relay.nn.relu(qnn.dequantize(sums, number(2.0**-9, F32), number(0)))
        checked(x, shape, y, {"conv2d_int8": 1}, left)
    found = str(selfbyoc.explain(tvm.IRModule.from_expr(relay.Function([x], y))))
    assert "it pads by 4, which is not what the padding of conv2d holds" in found


def test_padding_of_both():
    """Of one level they are one; of two, what is nearer to the image stays."""
    for value, left in ((ZERO, []), (4, ["nn.pad"])):
        x, shape, sums = layer("3x3", value, own=1)
        y = requantised(sums, last=False)
        checked(x, shape, y, {"conv2d_narrowed": 1}, left)


def test_a_pad_that_others_read_stays_for_them():
    x, shape, sums = layer("3x3", 7)
    padded = relay.nn.pad(x, [(0, 0), (0, 0), (1, 2), (0, 1)], 7)
    mod = tvm.IRModule.from_expr(
        relay.Function([x], relay.Tuple([requantised(sums, last=False), padded]))
    )
    given = bytes_of(np.random.default_rng(5), shape, "uint8")
    library = selfbyoc.build(mod)
    for found, wanted in zip(library(given), alone(mod, x=given), strict=True):
        np.testing.assert_array_equal(found, wanted)
