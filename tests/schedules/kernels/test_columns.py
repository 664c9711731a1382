"""Windows over one channel of levels as words of neighbouring columns."""

import numpy as np
import pytest
from harness import cpus
from levels import F32, bytes_of, level, sums

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.ir.emit import emit
from selfbyoc.machine import host, machine
from selfbyoc.schedules.kernels.conv.columns import pays
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import make_target, module_source

CPUS = ("llvm -mcpu=haswell", "llvm -mcpu=cascadelake", "llvm -mcpu=nehalem", "llvm")
TARGETS = [None]
TARGETS += [
    pytest.param(*t.values, marks=[*t.marks, pytest.mark.slow], id=t.id) for t in cpus(*CPUS)
]
SLOW = ("x86-64", "skylake-avx512")
SEVEN_BITS = 64

# Image, channels out, window, strides, padding (top, left, bottom, right), vertical dilation.
SHAPES = [
    ((1, 12, 13, 10), 12, (3, 3), (1, 1), (1, 1, 1, 1), 1),
    ((2, 17, 14, 14), 17, (3, 3), (1, 1), (1, 1, 1, 1), 1),
    ((1, 5, 15, 57), 5, (3, 3), (2, 2), (1, 1, 1, 1), 1),
    ((1, 5, 14, 56), 5, (3, 3), (2, 2), (0, 0, 1, 1), 1),  # as TensorFlow pads
    ((1, 6, 9, 31), 12, (3, 3), (1, 2), (1, 1, 1, 1), 1),
    ((1, 6, 9, 31), 6, (3, 3), (2, 1), (1, 1, 1, 1), 1),
    ((1, 4, 13, 37), 4, (3, 3), (4, 4), (1, 1, 1, 1), 1),
    ((1, 7, 20, 19), 7, (5, 5), (1, 1), (2, 2, 2, 2), 1),
    ((1, 7, 20, 19), 14, (5, 5), (2, 2), (2, 2, 2, 2), 1),
    ((1, 7, 14, 14), 7, (7, 7), (1, 1), (3, 3, 3, 3), 1),
    ((1, 3, 20, 18), 3, (9, 9), (1, 1), (4, 4, 4, 4), 1),
    ((1, 8, 1, 40), 8, (1, 5), (1, 1), (0, 2, 0, 2), 1),
    ((1, 8, 1, 80), 8, (1, 31), (1, 2), (0, 15, 0, 15), 1),
    ((1, 8, 12, 12), 8, (2, 2), (2, 2), (0, 0, 0, 0), 1),
    ((1, 8, 12, 12), 8, (3, 4), (1, 1), (0, 0, 0, 0), 1),
    ((1, 8, 12, 16), 8, (3, 3), (1, 1), (0, 0, 0, 0), 1),  # lies in the image as it is read
    ((1, 9, 15, 15), 9, (3, 3), (1, 1), (2, 1, 2, 1), 2),
    ((1, 9, 7, 7), 9, (3, 3), (1, 1), (1, 1, 1, 1), 1),
]
# What is no words of columns: a window one column wide, columns apart, three columns a step, few
# pixels.
OTHERS = [
    ((1, 6, 12, 12), 6, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1)),
    ((1, 6, 12, 12), 6, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    ((1, 6, 24, 25), 6, (3, 3), (3, 3), (1, 1, 1, 1), (1, 1)),
    ((1, 9, 1, 1), 9, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 9, 4, 3), 9, (2, 3), (1, 1), (1, 2, 1, 2), (1, 1)),
]


def wanted(x, weight, zero, strides, padding, dilation):
    """Sums in int64."""
    (dh, dw), (high, wide) = dilation, weight.shape[2:]
    spread = np.zeros((*weight.shape[:2], (high - 1) * dh + 1, (wide - 1) * dw + 1), "int64")
    spread[:, :, ::dh, ::dw] = weight
    around = [(0, 0), (0, 0), (padding[0], padding[2]), (padding[1], padding[3])]
    padded = np.pad(x.astype("int64"), around, constant_values=zero)
    return sums(padded, spread, zero, x.shape[1], 0)[:, :, :: strides[0], :: strides[1]]


def model(x, weight, zero, out, **how):
    """From levels to levels; scales are powers of two: no float step rounds but the last."""
    groups = x.shape[1]

    def program(x, weight):
        image, levels = op.dequantize(x, 2.0**-4, zero), op.dequantize(weight, 2.0**-7, 0)
        y = op.conv2d(image, levels, groups=groups, **how)
        return op.quantize(y, 0.37, 3, out_dtype=out)

    types = {"x": (x.shape, str(x.dtype)), "weight": (weight.shape, str(weight.dtype))}
    return emit(program, types, {"weight": weight})


def plan_of(mod, target):
    target = make_target(target) if target else selfbyoc.host_target()
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    return kernel.schedule(target)[0].plan


def checked(shape, target, dtype, zero, *, of_7_bits=False, is_of_columns=True):
    image, channels, window, strides, padding, dilation = shape
    dilation = (dilation, 1) if isinstance(dilation, int) else dilation
    rng = np.random.default_rng(sum(image) + channels)
    x, weight = bytes_of(rng, image, dtype), bytes_of(rng, (channels, 1, *window), "int8")
    if of_7_bits:
        weight = np.clip(weight, -SEVEN_BITS, SEVEN_BITS)
    mod = model(x, weight, zero, dtype, strides=strides, padding=padding, dilation=dilation)
    cpu = machine(make_target(target) if target else selfbyoc.host_target())
    width = window[1] if is_of_columns and pays(cpu) else 0
    plan = plan_of(mod, target)
    assert plan.columns == width
    assert not width or not of_7_bits or window[1] == 2 or plan.products == cpu.products_of_7_bits
    library = selfbyoc.build(mod, target)
    assert library.report.counts == {"conv2d_int8": 1}
    assert not library.unscheduled
    total = wanted(x, weight, zero, strides, padding, dilation)
    expected = level(total.astype(F32) * F32(2.0**-11), 0.37, 3, dtype)
    np.testing.assert_array_equal(library(x)[0], expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_windows_are_exact_on_every_cpu(target, shape):
    checked(shape, target, "uint8", 131)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES[:3] + SHAPES[7:9], ids=str)
def test_weights_of_7_bits(target, shape):
    checked(shape, target, "uint8", 255, of_7_bits=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES[1:3], ids=str)
def test_levels_with_signs(target, shape):
    checked(shape, target, "int8", -9)


@pytest.mark.parametrize("target", TARGETS)
def test_one_word_of_channels_a_group_is_none_of_columns(target):
    """Four channels of 7 bits, or by VNNI, are one word: it is no channel by itself."""
    rng = np.random.default_rng(11)
    x, weight = bytes_of(rng, (1, 16, 9, 8), "uint8"), bytes_of(rng, (8, 4, 3, 3), "int8")
    weight = np.clip(weight, -SEVEN_BITS, SEVEN_BITS)

    def program(x, weight):
        image, levels = op.dequantize(x, 2.0**-4, 7), op.dequantize(weight, 2.0**-7, 0)
        return op.conv2d(image, levels, groups=4)

    types = {"x": (x.shape, "uint8"), "weight": (weight.shape, "int8")}
    mod = emit(program, types, {"weight": weight})
    assert plan_of(mod, target).columns == 0
    library = selfbyoc.build(mod, target)
    assert library.report.counts == {"conv2d_int8": 1}
    total = sums(x, weight, 7, 4, 0)
    np.testing.assert_array_equal(library(x)[0], total.astype(F32) * F32(2.0**-11))


@pytest.mark.parametrize("shape", OTHERS, ids=str)
def test_what_is_no_words_of_columns(shape):
    checked(shape, None, "uint8", 131, is_of_columns=False)


@pytest.mark.parametrize("of_7_bits", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("target", "shuffle"),
    [*((cpu, "pshufb") for cpu in CPUS[:3]), ("llvm -mcpu=icelake-server", "vpermb")],
)
def test_words_are_shuffled_and_rows_copied_as_vectors(target, shuffle, stride, of_7_bits):
    """None is put together byte by byte, and no byte of a row is moved by itself."""
    rng = np.random.default_rng(3)
    x, weight = bytes_of(rng, (1, 16, 56, 56), "uint8"), bytes_of(rng, (16, 1, 3, 3), "int8")
    weight = np.clip(weight, -SEVEN_BITS, SEVEN_BITS) if of_7_bits else weight
    mod = model(x, weight, 7, "uint8", strides=(stride, stride), padding=(1, 1, 1, 1))
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=make_target(target)))
    target = make_target(target)
    func = finished(kernel.schedule(target)[1].mod["main"], target)
    func = func.with_attr("global_symbol", "main")
    code = module_source(machine_code(func, "main", target), "asm")
    assert shuffle in code
    assert code.count("movzbl") < 40


def test_what_shuffles_too_slowly_has_floats():
    assert [pays(machine(make_target(f"llvm -mcpu={name}"))) for name in SLOW] == [False] * len(
        SLOW
    )


@pytest.mark.parametrize("there", [CPUS[1], CPUS[3]])
@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("is_back", [False, True])
def test_a_weight_that_was_packed_for_another_cpu(there, width, is_back):
    """Its words are as long as they were packed, or it is one of floats."""
    here = CPUS[0]
    here, there = (there, here) if is_back else (here, there)
    if not (host.runs(there) and host.runs(here)):
        pytest.skip(f"this machine does not run {here} and {there}")
    rng = np.random.default_rng(width)
    x, weight = bytes_of(rng, (1, 6, 9, 23), "uint8"), bytes_of(rng, (6, 1, 3, width), "int8")
    with make_target(here):
        mod = selfbyoc.partition_for_tefuse(model(x, weight, 7, "uint8"))
    library = selfbyoc.build(mod, there)
    assert library.report.counts == {"conv2d_int8": 1}
    total = wanted(x, weight, 7, (1, 1), (0, 0, 0, 0), (1, 1))
    expected = level(total.astype(F32) * F32(2.0**-11), 0.37, 3)
    np.testing.assert_array_equal(library(x)[0], expected)


def test_a_weight_that_is_an_input():
    """Packed in each call, with its sums."""
    rng = np.random.default_rng(5)
    x, weight = bytes_of(rng, (1, 6, 9, 23), "uint8"), bytes_of(rng, (6, 1, 3, 3), "int8")

    def program(x, weight):
        image, levels = op.dequantize(x, 2.0**-4, 7), op.dequantize(weight, 2.0**-7, 0)
        return op.conv2d(image, levels, groups=6)

    mod = emit(program, {"x": (x.shape, "uint8"), "weight": (weight.shape, "int8")})
    library = selfbyoc.build(mod)
    assert library.report.counts == {"conv2d_int8": 1}
    total = wanted(x, weight, 7, (1, 1), (0, 0, 0, 0), (1, 1))
    np.testing.assert_array_equal(library(x, weight)[0], total.astype(F32) * F32(2.0**-11))
