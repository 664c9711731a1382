"""Averages of levels and of integers: bytes in, exact sums of int32, bit for bit what NumPy's
integers give, and of integers what TVM gives alone.
"""

import numpy as np
import pytest
from levels import F32, bytes_of, level

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ops.numpy_windows import quotient_of
from selfbyoc.partition.generation import ir
from selfbyoc.tvm import GENERATION

# Attributes of avg_pool2d, none: over the image; and the image, NCHW
POOLS = {
    "same": ({"pool_size": 3, "padding": 1}, (1, 37, 14, 19)),
    "strided": ({"pool_size": 3, "strides": 2, "padding": (0, 0, 1, 1)}, (2, 5, 27, 23)),
    "counted": (
        {"pool_size": (2, 3), "padding": (1, 0, 0, 2), "count_include_pad": True}, (1, 7, 9, 17),
    ),
    "ceil": ({"pool_size": 3, "strides": 2, "ceil_mode": True}, (1, 3, 14, 18)),
    "narrow": ({"pool_size": 2, "strides": 2}, (1, 19, 6, 6)),
    "large": ({"pool_size": 9, "padding": 4}, (1, 3, 11, 13)),
    "whole": ({"pool_size": (7, 5)}, (2, 37, 7, 5)),
    "global": (None, (1, 130, 7, 7)),
    "tail": (None, (2, 3, 13, 17)),
    "one": (None, (1, 1, 1, 1)),
}  # fmt: skip


def mean(x, attrs, **more):
    if attrs is None:
        return op.global_avg_pool2d(x, **more)
    return op.avg_pool2d(x, **attrs, **more)


def four(value):
    found = (value,) if isinstance(value, int) else tuple(value)
    return found * (4 // len(found))


def windows(x, attrs):
    """The sums of an integer image [N, C, H, W] under each window, and what they are divided by."""
    wide = x.astype("int64")
    if attrs is None:
        return wide.sum(axis=(2, 3), keepdims=True), np.full((1, 1), x[0, 0].size)
    size = four(attrs["pool_size"])[:2]
    step, padding = four(attrs.get("strides", 1))[:2], four(attrs.get("padding", 0))
    up = -1 if attrs.get("ceil_mode") else 1
    span = [x.shape[2 + n] + padding[n] + padding[2 + n] - size[n] for n in range(2)]
    out = [up * (up * span[n] // step[n]) + 1 for n in range(2)]
    sums, counts = np.zeros((*x.shape[:2], *out), "int64"), np.zeros(out, "int64")
    inside = np.ones(x.shape[2:], "int64")
    if attrs.get("count_include_pad"):
        inside = np.pad(inside, [padding[::2], padding[1::2]], constant_values=1)
    else:
        inside = np.pad(inside, [padding[::2], padding[1::2]])
    wide = np.pad(wide, [(0, 0), (0, 0), padding[::2], padding[1::2]])
    for y, z in np.ndindex(*out):
        at = tuple(slice(s * p, s * p + k) for s, p, k in zip(step, (y, z), size, strict=True))
        sums[:, :, y, z] = wide[(slice(None), slice(None), *at)].sum(axis=(2, 3))
        counts[y, z] = inside[at].sum()
    return sums, counts


def built(program, x, target=None):
    library = selfbyoc.build(emit(program, {"x": (x.shape, str(x.dtype))}), target)
    return library(x)[0], library.report


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", POOLS)
def test_of_levels(name, dtype):
    """One kernel from levels to levels, by the formula of convolutions: sum * (scale / count)."""
    attrs, shape = POOLS[name]
    x, zero = bytes_of(np.random.default_rng(3), shape, dtype), {"uint8": 131, "int8": -9}[dtype]

    def program(x):
        y = mean(op.dequantize(x, 0.023, zero), attrs)
        return op.quantize(op.relu(y), 0.019, 3, out_dtype=dtype)

    found, report = built(program, x)
    assert (report.counts, report.left) == ({"avg_pool2d_int8": 1}, {})
    sums, counts = windows(x.astype("int64") - zero, attrs)
    floats = sums.astype(F32) * (F32(0.023) / counts.astype(F32))
    np.testing.assert_array_equal(found, level(np.maximum(floats, 0), 0.019, 3, dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", POOLS)
def test_of_integers(name, dtype):
    """Rounded towards zero, as TVM divides: which is what it gives alone, too."""
    attrs, shape = POOLS[name]
    x = bytes_of(np.random.default_rng(4), shape, dtype)

    def program(x):
        y = mean(op.subtract(op.cast(x, dtype="int32"), 40), attrs)
        return op.cast(op.clip(op.relu(op.add(y, 30)), a_min=-100, a_max=100), dtype=dtype)

    found, report = built(program, x)
    assert (report.counts, report.left) == ({"avg_pool2d_integers": 1}, {})
    sums, counts = windows(x.astype("int64") - 40, attrs)
    means = quotient_of(sums, counts, np.dtype("int32"))
    np.testing.assert_array_equal(found, np.clip(np.maximum(means + 30, 0), 0, 100).astype(dtype))
    if dtype == "uint8" or (GENERATION == "relax" and attrs is not None):
        return  # of int32 0.27 makes int64 where it takes an avg_pool2d apart, and stops
    alone = selfbyoc.partition_for_tefuse(emit(program, {"x": (x.shape, dtype)}), composites=[])
    np.testing.assert_array_equal(found, selfbyoc.build(alone)(x)[0])


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_means_of_images(layout, keepdims):
    """Whichever way they are written; what is dropped are axes of one element."""
    shape = (2, 37, 5, 9)
    x = bytes_of(np.random.default_rng(5), shape, "int8")
    axes = tuple(layout.index(letter) for letter in "HW")

    def of_levels(x):
        y = op.mean(op.dequantize(x, 0.5, 3), axis=axes, keepdims=keepdims)
        return op.quantize(y, 0.25, 3, out_dtype="int8")

    def of_integers(x):
        y = op.mean(op.cast(x, dtype="int32"), axis=axes, keepdims=keepdims)
        return op.cast(op.clip(y, a_min=-128, a_max=127), dtype="int8")

    for program, composite in ((of_levels, "int8"), (of_integers, "integers")):
        found, report = built(program, x)
        assert report.counts == {f"avg_pool2d_{composite}": 1}
        assert report.left == ({} if keepdims else {"reshape": 1})
        total = x.sum(axis=axes, keepdims=keepdims, dtype="int64")
        count = x.size // total.size
        wanted = quotient_of(total, count, np.dtype("int32")).astype("int8")
        if composite == "int8":
            floats = (total - 3 * count).astype(F32) * (F32(0.5) / F32(count))
            wanted = level(floats, 0.25, 3, "int8")
        np.testing.assert_array_equal(found, wanted)


def averaged(zero):
    return lambda x: op.global_avg_pool2d(op.dequantize(x, 0.5, zero))


def test_the_ends_of_the_range():
    """Of 255s and zero points of 0, all of them, and -128s around 127: sums are far from float32's
    integers for images as large as these only.
    """
    for dtype, value, zero in (("uint8", 255, 0), ("int8", -128, 127)):
        x = np.full((1, 3, 301, 299), value, dtype)
        found, report = built(averaged(zero), x)
        assert report.counts == {"avg_pool2d_int8": 1}
        total = np.int64(value - zero) * x[0, 0].size
        wanted = F32(total) * (F32(0.5) / F32(x[0, 0].size))
        np.testing.assert_array_equal(found, np.full((1, 3, 1, 1), wanted))


def test_equal_pools_are_one_kernel_whatever_their_scales():
    def program(x):
        for scale, zero in ((0.5, 3), (0.25, 7)):
            y = op.avg_pool2d(op.dequantize(x, scale, zero), pool_size=3, padding=1)
            x = op.quantize(y, scale * 1.1, zero, out_dtype="uint8")
        return x

    mod = selfbyoc.partition_for_tefuse(emit(program, {"x": ((1, 8, 12, 12), "uint8")}))
    assert selfbyoc.report(mod).counts == {"avg_pool2d_int8": 2}
    assert len({str(f.attrs["global_symbol"]) for f in ir.external_functions(mod).values()}) == 1


@pytest.mark.parametrize(
    ("program", "dtype", "why"),
    [
        (lambda x: op.avg_pool2d(op.dequantize(x, 0.5, 3), layout="NHWC"), "uint8", "only NCHW"),
        (lambda x: op.global_avg_pool2d(op.cast(x, dtype="int16")), "int8", "only int32"),
        (lambda x: op.avg_pool2d(op.dequantize(x, 0.5, 3)), "int16", "only int8 and uint8"),
    ],
)
def test_what_is_refused_says_why(program, dtype, why):
    mod = selfbyoc.partition_for_tefuse(emit(program, {"x": ((1, 8, 12, 12), dtype)}))
    found = selfbyoc.report(mod)
    assert not {name for name in found.counts if name.startswith("avg_pool2d_int")}
    assert any(why in record.reason for record in found.records)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_the_nearest_pixel_is_a_level(dtype, layout):
    """Also where the resize stands between a dequantize and a quantize: bytes are moved."""
    x = bytes_of(np.random.default_rng(6), (2, 5, 9, 11), dtype)
    given = x if layout == "NCHW" else np.ascontiguousarray(np.moveaxis(x, 1, -1))
    given = given if layout == "NCHW" else np.repeat(given, 3, axis=-1)
    attrs = {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric"}

    def program(x):
        y = op.dequantize(x, 0.25, 7)
        y = op.resize2d(y, size=(18, 33), rounding_method="floor", layout=layout, **attrs)
        return op.quantize(y, 0.25, 7, out_dtype=dtype)

    found, report = built(program, given)
    assert (report.counts, report.left) == ({"resize2d": 1}, {})
    rows, columns = (layout.index(letter) for letter in "HW")
    wanted = given.repeat(2, axis=rows).repeat(3, axis=columns)
    np.testing.assert_array_equal(found, wanted)
