"""Weights of 7 bits: two products fit 16 bits, so CPUs without a product of four bytes have one."""

import numpy as np
import pytest
from harness import cpus
from levels import F32, bytes_of, level, sums
from symbolic_programs import UNKNOWN

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.external import packed_params
from selfbyoc.codegen.plan import ops_of
from selfbyoc.language.decisions import deciding
from selfbyoc.machine import machine
from selfbyoc.tvm import make_target
from selfbyoc.tvm.own_ops import BYTES, BYTES_OF_7, LEVELS_OF, PAIRS, SIGNED_BYTES

TARGETS = [None, "llvm -mcpu=haswell", "llvm -mcpu=nehalem", "llvm", "llvm -mcpu=skylake-avx512"]
TARGETS += ["llvm -mcpu=cascadelake"]
MIDDLE = {"int8": 0, "uint8": 128}


def convolved(zero, stride=1, padding=0, groups=1):
    def program(x, weight):
        image, levels = op.dequantize(x, 2.0**-4, zero), op.dequantize(weight, 2.0**-7, 0)
        how = {"strides": stride, "padding": padding, "groups": groups}
        return op.relu(op.conv2d(image, levels, **how))

    return program


def multiplied(zero, dtype="int8"):
    def program(x, weight):
        return op.dense(
            op.dequantize(x, 2.0**-4, zero), op.dequantize(weight, 2.0**-7, MIDDLE[dtype])
        )

    return program


def model(program, image, weight):
    types = {"x": (image.shape, str(image.dtype)), "weight": (weight.shape, str(weight.dtype))}
    return selfbyoc.emit(program, types, {"weight": weight})


def plan_of(mod, target):
    target = target or selfbyoc.host_target()
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    return kernel.schedule(target)[0].plan


def checked(program, image, weight, target, wanted):
    """One kernel, with words as they should be, and results that are exact."""
    mod = model(program, image, weight)
    target = target and make_target(target)
    cpu = machine(target or selfbyoc.host_target())
    plan = plan_of(mod, target)
    assert plan.products == cpu.products_of_7_bits
    assert plan.word == LEVELS_OF[cpu.products_of_7_bits]
    library = selfbyoc.build(mod, target)
    (found,) = library(image)
    np.testing.assert_array_equal(found, wanted.astype(F32) * F32(2.0**-11))
    return library.report.counts


def small(rng, shape, ends, dtype="int8"):
    """Weights within 64 of their middle, or those two alone."""
    made = rng.choice([-64, 64], shape) if ends else rng.integers(-64, 65, shape)
    made.flat[:2] = -64, 64
    return (made + MIDDLE[dtype]).astype(dtype)


@pytest.mark.parametrize("given", cpus(*TARGETS))
@pytest.mark.parametrize(
    ("x", "shape", "stride", "groups", "dtype", "zero"),
    [
        ((1, 32, 14, 14), (48, 32, 1, 1), 1, 1, "uint8", 131),
        ((2, 37, 9, 11), (21, 37, 1, 1), 1, 1, "int8", -128),  # the last word has one level
        ((1, 18, 15, 13), (35, 18, 3, 3), 2, 1, "uint8", 0),
        ((1, 3, 17, 19), (16, 3, 3, 3), 2, 1, "uint8", 255),
        ((1, 24, 7, 7), (16, 12, 3, 3), 2, 2, "int8", 5),
    ],
)
@pytest.mark.parametrize("ends", [False, True])
def test_convolutions(given, x, shape, stride, groups, dtype, zero, ends):
    rng, padding = np.random.default_rng(0), shape[2] // 2
    limits = np.iinfo(dtype)
    image = np.full(x, limits.max, dtype) if ends else bytes_of(rng, x, dtype)
    weight = small(rng, shape, ends)
    total = sums(image, weight, zero, groups, padding)[:, :, ::stride, ::stride]
    program = convolved(zero, stride, padding, groups)
    counts = checked(program, image, weight, given, np.maximum(total, 0))
    assert counts == {"conv2d_int8": 1}


@pytest.mark.parametrize("given", cpus(*TARGETS))
@pytest.mark.parametrize(
    ("rows", "inputs", "units", "dtype", "of_weight", "zero"),
    [
        (33, 64, 48, "uint8", "int8", 7),
        (1, 37, 50, "int8", "uint8", -128),
        (130, 3, 1, "uint8", "int8", 255),
    ],
)
@pytest.mark.parametrize("ends", [False, True])
def test_products(given, rows, inputs, units, dtype, of_weight, zero, ends):
    rng, limits = np.random.default_rng(1), np.iinfo(dtype)
    x = np.full((rows, inputs), limits.max, dtype) if ends else bytes_of(rng, (rows, inputs), dtype)
    weight = small(rng, (units, inputs), ends, of_weight)
    levels = x.astype(int) - zero, weight.astype(int) - MIDDLE[of_weight]
    counts = checked(
        multiplied(zero, of_weight), x, weight, given, levels[0] @ levels[1].transpose()
    )
    assert counts == {"dense_int8": 1}


@pytest.mark.parametrize("beyond", [65, -65, 127, -128])
def test_a_weight_of_more_is_multiplied_as_ever(beyond):
    rng = np.random.default_rng(2)
    image = np.full((1, 16, 5, 5), 255, "uint8")
    weight = small(rng, (16, 16, 1, 1), True)
    weight[3, 4] = weight[3, 5] = beyond  # two of one sum
    target = make_target("llvm -mcpu=haswell")
    assert plan_of(model(convolved(0), image, weight), target).products == PAIRS
    (found,) = selfbyoc.build(model(convolved(0), image, weight), target)(image)
    total = np.maximum(sums(image, weight, 0, padding=0), 0)
    np.testing.assert_array_equal(found, total.astype(F32) * F32(2.0**-11))


def test_equal_layers_of_which_one_has_more_bits():
    """They may be one function of TVM's: what holds for one of its calls alone does not hold."""

    def program(x, first, second):
        def layer(value, weight):
            levels = op.dequantize(value, 2.0**-4, 0), op.dequantize(weight, 2.0**-7, 0)
            return op.conv2d(*levels)

        return op.add(layer(x, first), layer(x, second))

    rng = np.random.default_rng(3)
    image = np.full((1, 16, 6, 6), 255, "uint8")
    weights = [small(rng, (16, 16, 1, 1), True), bytes_of(rng, (16, 16, 1, 1), "int8")]
    weights[1][0, :2] = 127
    types = {"x": (image.shape, "uint8")}
    types |= {name: ((16, 16, 1, 1), "int8") for name in ("first", "second")}
    mod = selfbyoc.emit(program, types, dict(zip(("first", "second"), weights, strict=True)))
    (found,) = selfbyoc.build(mod, make_target("llvm -mcpu=haswell"))(image)
    total = sum(sums(image, weight, 0, padding=0) for weight in weights)
    np.testing.assert_allclose(found, total * 2.0**-11, rtol=1e-6)


def test_a_weight_of_two_layers():
    """It cannot be replaced by its packed form, and is packed at every call."""

    def program(x, weight):
        levels = op.dequantize(weight, 2.0**-7, 0)
        first = op.conv2d(op.dequantize(x, 2.0**-4, 3), levels)
        between = op.quantize(first, 0.937, 3, out_dtype="uint8")
        return op.conv2d(op.dequantize(between, 1.0, 3), levels)

    rng = np.random.default_rng(7)
    image, weight = np.full((1, 16, 6, 5), 255, "uint8"), small(rng, (16, 16, 1, 1), True)
    library = selfbyoc.build(model(program, image, weight), make_target("llvm -mcpu=haswell"))
    (found,) = library(image)
    levels = level(sums(image, weight, 3, padding=0) * 2.0**-11, 0.937, 3)
    total = sums(levels, weight, 3, padding=0)
    np.testing.assert_array_equal(found, total.astype(F32) * F32(2.0**-7))


@pytest.mark.parametrize("bits", [7, 8])
def test_an_open_batch(bits):
    rng = np.random.default_rng(8)
    shape = (21, 37, 1, 1)
    weight = small(rng, shape, True) if bits == 7 else bytes_of(rng, shape, "int8")

    def program(x, weight):
        return op.quantize(convolved(9)(x, weight), 0.937, 5, out_dtype="uint8")

    types = {"x": ((UNKNOWN, 37, 9, 7), "uint8"), "weight": (shape, "int8")}
    mod = selfbyoc.emit(program, types, {"weight": weight})
    library = selfbyoc.build(mod, make_target("llvm -mcpu=haswell"))
    assert library.report.counts == {"conv2d_int8": 1}
    for batch in (1, 2, 5):
        image = bytes_of(rng, (batch, 37, 9, 7), "uint8")
        (found,) = library(image)
        total = np.maximum(sums(image, weight, 9, padding=0), 0)
        np.testing.assert_array_equal(found, level(total * 2.0**-11, 0.937, 5))


def test_what_is_packed_for_one_cpu_runs_on_another():
    """Words of four bytes say by the weight's 7 bits what may multiply them."""
    rng = np.random.default_rng(4)
    image, weight = bytes_of(rng, (1, 20, 9, 9), "uint8"), small(rng, (32, 20, 1, 1), True)
    mod = selfbyoc.partition_for_tefuse(
        model(convolved(9), image, weight), target=make_target("llvm -mcpu=cascadelake")
    )
    (kernel,) = kernels(mod)
    arm = "neoverse-n1 -mtriple=aarch64-linux-gnu"  # which reads words of any weights alike
    for target, products in (
        ("haswell", BYTES_OF_7), ("cascadelake", BYTES_OF_7), (arm, SIGNED_BYTES),
    ):  # fmt: skip
        stacked, _ = kernel.schedule(make_target(f"llvm -mcpu={target}"))
        assert stacked.plan.products == products
    many = weight.copy()
    many[0, 0] = 100
    mod = selfbyoc.partition_for_tefuse(
        model(convolved(9), image, many), target=make_target("llvm -mcpu=cascadelake")
    )
    (kernel,) = kernels(mod)
    for target, products in (("haswell", BYTES), (arm, SIGNED_BYTES)):
        stacked, _ = kernel.schedule(make_target(f"llvm -mcpu={target}"))
        assert stacked.plan.products == products


def test_a_weight_packed_by_winograd_is_planned_again_so():
    """Its shape says nothing of words of four bytes."""

    def program(x, weight):
        levels = op.dequantize(x, 2.0**-4, 9), op.dequantize(weight, 2.0**-7, 0)
        return op.conv2d(*levels, padding=(3, 4, 4, 3), dilation=2)

    rng = np.random.default_rng(6)
    image, weight = bytes_of(rng, (1, 53, 3, 3), "uint8"), small(rng, (178, 53, 3, 3), True)
    mod, target = model(program, image, weight), make_target("llvm -num-cores=24")
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    plan, cpu = kernel.composite.kernel.plan, machine(target)
    (packed,) = packed_params(kernel.source).values()
    with target, deciding({}, fitted=True):  # raises where a question is asked anew otherwise
        first = plan(ops_of(kernel.match, {"weight": None}), cpu)
        assert "Winograd" in str(first)
        assert plan(ops_of(kernel.match, {"weight": packed.value.shape}), cpu) == first


def test_verification_and_its_made_up_weights_stay_within():
    """Weights that verification makes up for packed ones have 7 bits, too."""
    rng = np.random.default_rng(5)
    image, weight = bytes_of(rng, (1, 32, 10, 10), "uint8"), small(rng, (32, 32, 1, 1), True)
    target = make_target("llvm -mcpu=haswell")
    parted = selfbyoc.partition_for_tefuse(model(convolved(9), image, weight), target=target)
    report = selfbyoc.verify(parted, target=target)
    assert report.ok, str(report)
