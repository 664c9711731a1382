"""Convolutions whose weights are halves: they stay so where they are read as they are packed, and
compute what float32 kernels do of the same numbers. The reference is NumPy.
"""

from functools import partial

import ml_dtypes
import numpy as np
import pytest
from harness import needs_llvm
from numpy.lib.stride_tricks import sliding_window_view

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.partition.generation import ir
from selfbyoc.runtime.tolerance import difference
from selfbyoc.simplify.halves import with_half_weights
from selfbyoc.tvm import GENERATION, constant_numpy

TARGET = "llvm -mcpu=haswell -num-cores=2"
HALVES = [
    np.float16,
    pytest.param(
        ml_dtypes.bfloat16,
        marks=needs_llvm(11, "bfloat16"),
    ),
]
# By what lies in the lanes: the image, the weight, stride, padding.
FORMS = {
    "channels": ((1, 128, 7, 7), (96, 128, 1, 1), 1, 0),
    "flat pixels": ((1, 64, 28, 28), (36, 64, 1, 1), 1, 0),
    "flat pixels, in parts": ((1, 1024, 28, 28), (17, 1024, 1, 1), 1, 0),
    "pixels": ((2, 19, 29, 31), (21, 19, 3, 3), 2, 1),
    "pixels of a picture": ((1, 3, 64, 64), (64, 3, 7, 7), 2, 3),
}


def weight_of(shape, dtype, seed=0):
    weight = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return (weight / np.sqrt(np.prod(shape[1:]))).astype(dtype)


def image_of(shape):
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def convolved(x, weight, stride, padding, groups=1):
    pad = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    windows = sliding_window_view(np.pad(x.astype("float64"), pad), weight.shape[2:], (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    pairs = zip(np.split(windows, groups, 1), np.split(weight, groups), strict=True)
    found = [np.einsum("nchwij,ocij->nohw", x, w.astype("float64")) for x, w in pairs]
    return np.concatenate(found, 1)


def model(x, weight, **attrs):
    """Its weight cast to floats, where it is of halves."""
    dtype = str(weight.dtype)

    def program(x, w):
        wide = w if dtype == "float32" else op.cast(w, dtype="float32")
        return op.conv2d(x, wide, **attrs)

    return emit(program, {"x": x.shape, "w": (weight.shape, dtype)}, {"w": weight})


def packed(parted):
    """The dtypes of what is passed to kernels."""
    sites = [site for found in ir.constant_args(parted).values() for site in found]
    return [str(constant_numpy(node).dtype) for site in sites for node in site.values()]


def check(x, weight, held, **attrs):
    """Held as `held`, numbers as of NumPy, and as of a float32 kernel to the last bit."""
    parted = selfbyoc.partition_for_tefuse(model(x, weight, **attrs), target=TARGET)
    assert selfbyoc.report(parted).counts == {"conv2d": 1}
    assert packed(parted) == [held]
    (found,) = selfbyoc.build(parted, target=TARGET)(x)
    wide = weight.astype("float32")
    wanted = convolved(x, wide, attrs["strides"], attrs["padding"], attrs.get("groups", 1))
    assert difference(found, wanted, "float32", int(np.prod(weight.shape[1:]))) is None
    (same,) = selfbyoc.build(model(x, wide, **attrs), target=TARGET)(x)
    np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("form", FORMS)
def test_they_stay_halves(form, dtype):
    image, kernel, stride, padding = FORMS[form]
    weight = weight_of(kernel, dtype)
    check(image_of(image), weight, str(weight.dtype), strides=stride, padding=padding)


@pytest.mark.parametrize("groups", [4, 32, 144])
def test_in_groups(groups):
    """As lanes, in registers, or with pixels as lanes, once for a task."""
    image, kernel = {
        4: ((2, 48, 17, 10), (72, 12, 3, 3)), 32: ((1, 64, 9, 9), (128, 2, 3, 3)),
        144: ((1, 144, 14, 14), (144, 1, 3, 3)),
    }[groups]  # fmt: skip
    held = "float32" if GENERATION == "relay" else "float16"
    weight = weight_of(kernel, np.float16)
    check(image_of(image), weight, held, strides=1, padding=1, groups=groups)


def test_what_winograd_transforms_is_of_floats():
    x, weight = image_of((1, 64, 28, 28)), weight_of((64, 64, 3, 3), np.float16)
    mod = model(x, weight, padding=1, strides=1)
    parted = selfbyoc.partition_for_tefuse(mod, target=TARGET)
    assert packed(parted) == ["float32"]
    (found,) = selfbyoc.build(parted, target=TARGET)(x)
    (same,) = selfbyoc.build(
        model(x, weight.astype("float32"), padding=1, strides=1), target=TARGET
    )(x)
    np.testing.assert_array_equal(found, same)
    told = str(selfbyoc.explain(mod, target=TARGET).records)
    assert "weight is floats, not float16: Winograd's transform of it has more bits" in told


def test_a_cpu_without_conversions_reads_floats():
    x, weight = image_of((1, 64, 7, 7)), weight_of((32, 64, 1, 1), np.float16)
    mod = model(x, weight, padding=0, strides=1)
    for target, held, why in (
        ("llvm -mcpu=sandybridge", "float32", "weight is floats, not float16: the CPU has no"),
        (TARGET, "float16", "weight is float16"),
    ):
        assert packed(selfbyoc.partition_for_tefuse(mod, target=target)) == [held]
        assert why in str(selfbyoc.explain(mod, target=target).records)


def test_what_nobody_lays_out_is_of_floats():
    """NHWC has no kernel of ours: the cast would be made in each call."""
    weight = weight_of((1, 1, 64, 40), np.float16)

    def program(x, w):
        wide = op.cast(w, dtype="float32")
        return op.conv2d(x, wide, data_layout="NHWC", kernel_layout="HWIO")

    types = {"x": (1, 6, 6, 64), "w": (weight.shape, "float16")}
    parted = selfbyoc.partition_for_tefuse(emit(program, types, {"w": weight}), target=TARGET)
    assert selfbyoc.report(parted).counts == {"conv2d_nhwc": 1}
    assert packed(parted) == ["float32"]
    x = image_of((1, 6, 6, 64))
    wanted = np.einsum("nhwc,co->nhwo", x.astype("float64"), weight[0, 0].astype("float64"))
    assert difference(selfbyoc.build(parted, target=TARGET)(x)[0], wanted, "float32", 64) is None


def chain(x, w1, w2):
    return op.relu(op.conv2d(op.relu(op.conv2d(x, w1, strides=2)), w2, padding=1))


def separable(x, w1, w2):
    return op.relu(op.conv2d(op.relu(op.conv2d(x, w1, groups=128, padding=1)), w2))


def transposed(x, w1):
    return op.conv2d_transpose(x, w1, strides=2, padding=1)


ROUNDED = {
    "conv2d_relu_conv2d_relu": (chain, (1, 17, 41, 40), [(40, 17, 2, 2), (23, 40, 1, 5)]),
    "depthwise_pointwise": (separable, (1, 128, 13, 14), [(128, 1, 3, 3), (40, 128, 1, 1)]),
    "conv2d_transpose": (transposed, (1, 32, 9, 11), [(32, 16, 4, 4)]),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_when_built(name):
    """By `weights="float16"`: what float32 kernels compute of weights that were rounded before."""
    program, image, kernels = ROUNDED[name]
    x, weights = image_of(image), [weight_of(k, np.float32, n) for n, k in enumerate(kernels)]

    def mod(made):
        given = {f"w{n}": made(w) for n, w in enumerate(weights, 1)}
        return emit(program, {"x": x.shape, **{n: w.shape for n, w in given.items()}}, given)

    plain = mod(lambda w: w)
    held = partial(selfbyoc.partition_for_tefuse, target=TARGET)
    assert "float16" in packed(held(with_half_weights(ir.prepare(plain, None), "float16")))
    library = selfbyoc.build(plain, target=TARGET, weights="float16")
    assert library.report.counts == {name: 1}
    rounded = mod(lambda w: w.astype("float16").astype("float32"))
    np.testing.assert_array_equal(library(x)[0], selfbyoc.build(rounded, target=TARGET)(x)[0])
