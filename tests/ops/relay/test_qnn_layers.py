"""qnn.conv2d as importers of TFLite's models write it: around a zero point, with a bias
of int32, requantised or dequantised: bit for bit what NumPy's integers give.
"""

import numpy as np
import pytest
from levels import bytes_of, window_sums
from tvm import relay

import selfbyoc
from selfbyoc.ops.fixed_point import fixed_point
from selfbyoc.tvm import tvm

F32 = "float32"
LAST = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
LAYERS = {  # x NCHW, weight OIHW, attributes
    "plain": ((1, 8, 9, 7), (16, 8, 3, 3), {"padding": 1}),
    "tail": ((2, 5, 11, 6), (7, 5, 3, 2), {}),
    "strided": ((1, 5, 11, 6), (7, 5, 3, 2), {"strides": 2}),
    "depthwise": ((1, 12, 9, 8), (12, 1, 3, 3), {"padding": 1, "groups": 12}),
    "multiplied": ((1, 6, 9, 8), (12, 1, 3, 3), {"padding": 1, "groups": 6}),
    "ones": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
}
ZERO, SCALE = 3, 0.0041


def number(value, dtype="int32"):
    return relay.const(np.asarray(value, dtype))


def parts(name, seed=3):
    shape, weight, attrs = LAYERS[name]
    rng = np.random.default_rng(seed)
    bias = rng.integers(-2000, 2000, weight[0]).astype("int32")
    return shape, bytes_of(rng, weight, "int8"), bias, attrs


def sums(name, *, last):
    """main's parameter, and int32 sums with their bias."""
    shape, weight, bias, attrs = parts(name)
    x = relay.var("x", shape=shape, dtype="uint8")
    layouts, taps = {}, weight
    if last:
        x = relay.var("x", shape=(shape[0], *shape[2:], shape[1]), dtype="uint8")
        layouts, taps = dict(LAST), weight.transpose(2, 3, 1, 0)
    if last and attrs.get("groups", 1) > 1:  # [rows, columns, channels, multiplier]
        layouts["kernel_layout"] = "HWOI"
        taps = taps.reshape(*taps.shape[:2], attrs["groups"], -1)
    y = relay.qnn.op.conv2d(
        x, number(np.ascontiguousarray(taps), "int8"), number(ZERO), number(0),
        number(0.03, F32), number(0.005, F32), kernel_size=weight.shape[2:],
        channels=len(weight), padding=(attrs.get("padding", 0),) * 4,
        strides=(attrs.get("strides", 1),) * 2, groups=attrs.get("groups", 1), **layouts,
    )  # fmt: skip
    return x, relay.nn.bias_add(y, number(bias), axis=3 if last else 1)


def checked(name, x, y, composite, meaning, *, last):
    library = selfbyoc.build(tvm.IRModule.from_expr(relay.Function([x], y)))
    assert library.report.counts == {composite: 1}
    shape, weight, bias, attrs = parts(name)
    image = bytes_of(np.random.default_rng(5), shape, "uint8")
    given = np.ascontiguousarray(np.moveaxis(image, 1, -1)) if last else image
    total = window_sums(image, weight, ZERO, **attrs) + bias[:, None, None]
    wanted = meaning(total)
    np.testing.assert_array_equal(library(given)[0], np.moveaxis(wanted, 1, -1) if last else wanted)
    return library.report


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_requantised(name, last):
    x, y = sums(name, last=last)
    y = relay.qnn.op.requantize(
        y, number(SCALE, F32), number(0), number(1, F32), number(5), axis=3 if last else 1,
        out_dtype="uint8", rounding="UPWARD", compute_dtype="int64",
    )  # fmt: skip
    multiplier, shift = fixed_point(float(np.float32(SCALE)))

    def meaning(total):
        return np.clip(((total * multiplier + (1 << (shift - 1))) >> shift) + 5, 0, 255)

    composite = "conv2d_narrowed_any_layout" if last else "conv2d_narrowed"
    checked(name, x, y, composite, meaning, last=last)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_dequantised_by_channel(name, last):
    x, y = sums(name, last=last)
    scales = np.linspace(0.001, 0.02, LAYERS[name][1][0]).astype(F32)
    y = relay.qnn.op.dequantize(y, number(scales, F32), number(0), axis=3 if last else 1)

    def meaning(total):
        return total.astype(F32) * scales[:, None, None]

    report = checked(name, x, y, "conv2d_int8", meaning, last=last)
    assert "dequantize" not in report.left


def test_scales_by_channel_of_a_requantize_stay():
    x, y = sums("plain", last=False)
    y = relay.qnn.op.requantize(
        y, number(np.full(16, SCALE), F32), number(0), number(1, F32), number(5), axis=1,
        out_dtype="uint8", rounding="UPWARD", compute_dtype="int64",
    )  # fmt: skip
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    report = selfbyoc.explain(mod).report
    assert report.counts == {}
    assert report.left["qnn_conv2d"] == 1


@pytest.mark.parametrize("last", [False, True])
def test_a_depthwise_weight_with_a_multiplier_in_floats(last):
    """TVM has [channels, multiplier] where the layout says [outputs, inputs]."""
    shape, weight, _, attrs = parts("multiplied")
    floats = weight.astype(F32)
    taps = floats.reshape(6, 2, 3, 3)
    x = relay.var("x", shape=(1, 9, 8, 6) if last else shape)
    y = relay.nn.conv2d(
        x, number(np.ascontiguousarray(taps.transpose(2, 3, 0, 1) if last else taps), F32),
        kernel_size=(3, 3), channels=12, padding=(1, 1), groups=6,
        **({"data_layout": "NHWC", "kernel_layout": "HWOI"} if last else {}),
    )  # fmt: skip
    library = selfbyoc.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(y))))
    image = bytes_of(np.random.default_rng(5), shape, "uint8")
    wanted = np.maximum(window_sums(image, weight, 0, **attrs), 0)
    given = image.astype(F32)
    (found,) = library(np.ascontiguousarray(np.moveaxis(given, 1, -1)) if last else given)
    np.testing.assert_array_equal(found, np.moveaxis(wanted, 1, -1) if last else wanted)
