"""qnn.conv2d as importers of TFLite's models write it: around a zero point, with a bias
of int32, requantised or dequantised: bit for bit what NumPy's integers give.
"""

import numpy as np
import pytest
from levels import bytes_of, window_sums
from tvm import relay

import selfbyoc
from selfbyoc.analysis.kernels import kernels
from selfbyoc.errors import InputError
from selfbyoc.ops.fixed_point import fixed_point
from selfbyoc.tvm import make_target, tvm

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

    checked(name, x, y, "conv2d_narrowed", meaning, last=last)


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


def by_channel(y, scales, *, last, **attrs):
    return relay.qnn.op.requantize(
        y, number(scales, F32), number(0), number(0.5, F32), number(5), axis=3 if last else 1,
        out_dtype="uint8", **attrs,
    )  # fmt: skip


@pytest.mark.parametrize(("last", "rounding"), [(False, "UPWARD"), (True, "TONEAREST")])
@pytest.mark.parametrize("name", LAYERS)
def test_requantised_by_channel(name, last, rounding):
    """As TFLite's models are imported; of one channel it is one scale."""
    x, y = sums(name, last=last)
    scales = np.geomspace(0.0005, 0.3, LAYERS[name][1][0]).astype(F32)
    asked = {"rounding": rounding, "compute_dtype": "int64"}
    y = by_channel(y, scales, last=last, **asked)
    factors = [fixed_point(float(scale) / 0.5) for scale in scales]
    multiplier, shift = (np.array(n)[:, None, None] for n in zip(*factors, strict=True))

    def meaning(total):
        wide = total * multiplier
        below = (wide < 0) if rounding == "TONEAREST" else 0
        return np.clip(((wide + (1 << (shift - 1)) - below) >> shift) + 5, 0, 255)

    report = checked(name, x, y, "conv2d_narrowed", meaning, last=last)
    assert not {"requantize", "requantize_by_channel"} & set(report.left)


def test_equal_layers_of_other_scales_are_one_kernel():
    found = set()
    for most in (0.05, 0.1):  # of an output's scale of 0.5: both are shifted by 33 bits or more
        x, y = sums("plain", last=False)
        y = by_channel(y, np.linspace(0.01, most, 16), last=False)
        parted = selfbyoc.partition_for_tefuse(tvm.IRModule.from_expr(relay.Function([x], y)))
        (kernel,) = kernels(parted)
        found.add(tvm.ir.structural_hash(kernel.schedule(make_target("llvm"))[1].mod["main"]))
    assert len(found) == 1


def test_the_same_scale_for_each_channel_is_one():
    x, y = sums("plain", last=False)
    y = by_channel(y, np.full(16, SCALE), last=False)
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    assert selfbyoc.explain(mod).report.counts == {"conv2d_narrowed": 1}
    assert "requantize_by_channel" not in str(selfbyoc.partition_for_tefuse(mod))


@pytest.mark.parametrize("scale", [0.0, -0.5, float("nan"), float("inf")])
def test_scales_that_mean_nothing_are_an_error(scale):
    """Of a channel, or of all; the node is named where the model has a name."""
    for scales in (np.array([0.1] * 15 + [scale]), np.array(scale)):
        x, y = sums("plain", last=False)
        y = by_channel(y, scales, last=False)
        span = relay.Span(relay.SourceName("block_3/conv"), 0, 0, 0, 0)
        named = relay.Call(y.op, y.args, y.attrs, y.type_args, span)
        mod = tvm.IRModule.from_expr(relay.Function([x], named))
        with pytest.raises(InputError, match="'block_3/conv': its scale holds"):
            selfbyoc.partition_for_tefuse(mod)


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
