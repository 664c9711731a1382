"""Pads before convolutions: zeros are the convolution's own padding, a level of bytes is what the
padding of their kernel holds; on both generations.
"""

import numpy as np
import pytest
from levels import F32, bytes_of, window_sums

import selfbyoc
from selfbyoc.ir.generation import writer
from selfbyoc.ops.vocabulary import KINDS
from selfbyoc.tvm import GENERATION

SIDES = ((1, 2), (0, 1))
CONV = {name: KINDS["conv2d"].attrs[name] for name in KINDS["conv2d"].attrs}


def pad(x, value, dtype, last=False, mode="constant"):
    widths = ((0, 0), *SIDES, (0, 0)) if last else ((0, 0), (0, 0), *SIDES)
    attrs = {"pad_width": widths, "pad_mode": mode}
    if GENERATION == "relay":
        return writer.emit_call("nn.pad", [x, writer.constant(np.asarray(value, dtype))], attrs)
    return writer.emit_call("nn.pad", [x], {**attrs, "pad_value": float(value)})


def conv(x, weight, **attrs):
    return writer.emit_call("conv2d", [x, writer.constant(weight)], {**CONV, **attrs})


def built(body, x):
    mod = writer.emit_module({"x": (x.shape, str(x.dtype))}, lambda x: [body(x)])
    library = selfbyoc.build(mod)
    return library(x)[0], library.report, mod


@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("last", [False, True])
def test_floats_padded_by_zero(last, own):
    rng = np.random.default_rng(0)
    image = rng.integers(-9, 9, (2, 5, 9, 11)).astype(F32)
    weight = rng.integers(-9, 9, (7, 5, 3, 3)).astype(F32)
    given = np.ascontiguousarray(np.moveaxis(image, 1, -1)) if last else image
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"} if last else {}
    taps = np.ascontiguousarray(weight.transpose(2, 3, 1, 0)) if last else weight
    found, report, _ = built(
        lambda x: conv(pad(x, 0, F32, last), taps, padding=(own,) * 4, **layouts), given
    )
    assert (sum(report.counts.values()), report.left) == (1, {})
    wide = np.pad(image, [(0, 0), (0, 0), *SIDES])
    wanted = window_sums(wide, weight, 0, padding=own)
    np.testing.assert_array_equal(found, np.moveaxis(wanted, 1, -1) if last else wanted)


@pytest.mark.parametrize(("value", "mode"), [(2, "constant"), (0, "reflect")])
def test_what_is_no_zero_stays_and_is_told(value, mode):
    rng = np.random.default_rng(1)
    image = rng.integers(-9, 9, (1, 5, 9, 11)).astype(F32)
    weight = rng.integers(-9, 9, (7, 5, 3, 3)).astype(F32)
    found, report, mod = built(lambda x: conv(pad(x, value, F32, mode=mode), weight), image)
    assert (report.counts, report.left) == ({"conv2d": 1}, {"nn.pad": 1})
    more = {"constant_values": value} if mode == "constant" else {}
    wide = np.pad(image, [(0, 0), (0, 0), *SIDES], mode=mode, **more)
    np.testing.assert_array_equal(found, window_sums(wide, weight, 0))
    assert "nn.pad before it stays outside: it " in str(selfbyoc.report(
        selfbyoc.partition_for_tefuse(mod)).records)  # fmt: skip


@pytest.mark.parametrize("zero", [7, 0])
def test_levels_padded_by_their_zero_point(zero):
    rng = np.random.default_rng(2)
    image, weight = bytes_of(rng, (1, 8, 9, 11), "uint8"), bytes_of(rng, (12, 8, 3, 3), "int8")

    def levels(x, zero, dtype):
        factors = [writer.constant(np.asarray(v, d)) for v, d in ((0.5, F32), (zero, dtype))]
        return writer.emit_call("dequantize", [x, *factors], {"axis": -1, "out_dtype": "float32"})

    def body(x):
        zeros = "int32" if GENERATION == "relay" else "uint8"
        floats = levels(pad(x, zero, "uint8"), zero, zeros)
        taps = levels(writer.constant(weight), 0, zeros.replace("uint8", "int8"))
        return writer.emit_call("conv2d", [floats, taps], CONV)

    found, report, _ = built(body, image)
    assert (report.counts, report.left) == ({"conv2d_int8": 1}, {})
    wide = np.pad(image, [(0, 0), (0, 0), *SIDES], constant_values=zero)
    np.testing.assert_array_equal(found, window_sums(wide, weight, zero) * F32(0.25))


@pytest.mark.parametrize("value", [0, -77, 100])
@pytest.mark.parametrize("shape", [(1, 16, 12, 13), (1, 64, 28, 28)])
def test_bytes_whose_sums_stay_integers(shape, value):
    """The kernel's padding holds any level: zero is the convolution's own."""
    rng = np.random.default_rng(3)
    image, weight = bytes_of(rng, shape, "int8"), bytes_of(rng, (9, shape[1], 3, 3), "int8")

    def body(x):
        y = conv(pad(x, value, "int8"), weight, out_dtype="int32")
        y = writer.emit_call("right_shift", [y, writer.constant(np.asarray(9, "int32"))], {})
        y = writer.emit_call("clip", [y], {"a_min": -128, "a_max": 127})
        return writer.emit_call("cast", [y], {"dtype": "int8"})

    found, report, _ = built(body, image)
    assert (report.counts, report.left) == ({"conv2d_narrowed": 1}, {})
    wide = np.pad(image, [(0, 0), (0, 0), *SIDES], constant_values=value)
    wanted = np.clip(window_sums(wide, weight, 0) >> 9, -128, 127)
    np.testing.assert_array_equal(found, wanted)
