"""Levels on ARM, under qemu-user: exact to the bit, whatever the operands, whoever packed them."""

import sys
from pathlib import Path

import numpy as np
import pytest
from harness import served
from levels import F32, bytes_of, sums

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.analysis.verify.run import Runner
from selfbyoc.codegen.cache.kernels import using
from selfbyoc.errors import TargetError
from selfbyoc.machine import host
from selfbyoc.machine.features import check_cpu
from selfbyoc.tvm import make_target
from selfbyoc.tvm.own_ops import BYTES, PAIRS, SIGNED_BYTES

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from other_cpus import aarch64  # isort: skip

ARM = "llvm -mtriple=aarch64-linux-gnu -mcpu="
KINDS = {"neoverse-n1": SIGNED_BYTES, "cortex-a72": PAIRS, "neoverse-v2": BYTES}
CPUS = sorted(KINDS)
VNNI = "llvm -mcpu=cascadelake"


def target_of(cpu):
    target = cpu if cpu.startswith("llvm") else ARM + cpu
    try:
        check_cpu(make_target(target))
    except TargetError as err:
        pytest.skip(str(err))
    return make_target(target)


def convolved(zero, stride=1, groups=1):
    def program(x, weight):
        image, levels = op.dequantize(x, 2.0**-4, zero), op.dequantize(weight, 2.0**-7, 0)
        return op.conv2d(image, levels, padding=1, strides=stride, groups=groups)

    return program


def multiplied(zero):
    def program(x, weight):
        return op.dense(op.dequantize(x, 2.0**-4, zero), op.dequantize(weight, 2.0**-7, 0))

    return program


def ran(program, x, weight, packed_for, cpu, folder, **factors):
    """The one kernel's plan, and its result on a CPU; its weight was packed for one, too."""
    values = {"weight": weight, **factors}
    types = {n: (a.shape, str(a.dtype)) for n, a in {"x": x, **values}.items()}
    mod = selfbyoc.emit(program, types, values)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target_of(packed_for)))
    target = target_of(cpu)
    inputs = kernel.source.graph.inputs
    given = [kernel.calls[0].get(n, x) for n in range(len(inputs))]
    with using(False):
        if host.runs(target):
            runner = Runner(kernel.source, target)
        else:
            served(aarch64.cannot_run())
            runner = aarch64.Emulated(kernel.source, target, folder)
        (found,) = runner(given)
    return kernel.schedule(target)[0].plan, found


def ends(dtype, level, zero):
    limits = np.iinfo(dtype)
    return (limits.min, limits.max)[level], (limits.min, limits.max)[zero]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("of_weight", [-128, 127])
@pytest.mark.parametrize(("level", "zero"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_both_ends_of_every_range(tmp_path, cpu, dtype, of_weight, level, zero):
    """Of a product with a tail in every direction; a few weights are at the other end."""
    level, zero = ends(dtype, level, zero)
    x = np.full((7, 131), level, dtype)
    weight = np.full((37, 131), of_weight, "int8")
    weight[::5, ::3] = -1 - of_weight
    plan, found = ran(multiplied(zero), x, weight, cpu, cpu, tmp_path)
    assert plan.products == KINDS[cpu]
    wanted = (x.astype(int) - zero) @ weight.astype(int).T
    np.testing.assert_array_equal(found, wanted.astype(F32) * F32(2.0**-11))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(
    ("shape", "units", "stride", "groups", "dtype", "zero"),
    [
        ((2, 19, 9, 11), 21, 1, 1, "uint8", 255),
        ((1, 35, 8, 13), 20, 2, 1, "int8", -128),
        ((1, 20, 8, 9), 12, 1, 4, "uint8", 0),
        ((1, 64, 14, 14), 32, 1, 1, "int8", 127),  # Winograd's on some
        ((1, 6, 11, 13), 6, 1, 6, "int8", -9),  # words of columns where bytes have a product
        ((2, 5, 14, 21), 5, 2, 5, "uint8", 131),
    ],
)
def test_convolutions_whose_padding_is_the_zero_point(
    tmp_path, cpu, shape, units, stride, groups, dtype, zero
):
    rng = np.random.default_rng(0)
    x = bytes_of(rng, shape, dtype)
    weight = bytes_of(rng, (units, shape[1] // groups, 3, 3), "int8")
    _, found = ran(convolved(zero, stride, groups), x, weight, cpu, cpu, tmp_path)
    wanted = sums(x, weight, zero, groups)[:, :, ::stride, ::stride]
    np.testing.assert_array_equal(found, wanted.astype(F32) * F32(2.0**-11))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("stride", [1, 2])
def test_sums_that_stay_integers(tmp_path, cpu, stride):
    """Their zero point is a constant, and the byte of their padding, too."""
    rng = np.random.default_rng(2)
    x, weight = bytes_of(rng, (1, 19, 9, 7), "int8"), bytes_of(rng, (21, 19, 3, 3), "int8")

    def program(x, weight):
        y = op.conv2d(x, weight, padding=1, strides=stride, out_dtype="int32")
        return op.cast(op.clip(op.right_shift(y, 6), a_min=-127, a_max=127), dtype="int8")

    _, found = ran(program, x, weight, cpu, cpu, tmp_path)
    wanted = sums(x, weight, 0)[:, :, ::stride, ::stride]
    np.testing.assert_array_equal(found, np.clip(wanted >> 6, -127, 127))


@pytest.mark.parametrize("seven_bits", [False, True])
@pytest.mark.parametrize(
    ("packed_for", "cpu"),
    [
        (VNNI, "neoverse-n1"),
        (VNNI, "neoverse-v2"),
        (VNNI, "cortex-a72"),
        ("neoverse-n1", VNNI),
        ("neoverse-n1", "llvm -mcpu=haswell"),
        ("llvm -mcpu=haswell", "neoverse-n1"),
        ("cortex-a72", "neoverse-n1"),
    ],
)
def test_words_of_another_cpu(tmp_path, packed_for, cpu, seven_bits):
    if cpu.startswith("llvm") and not host.runs(make_target(cpu)):
        pytest.skip(f"this machine does not run {cpu}")
    rng = np.random.default_rng(1)
    x, weight = bytes_of(rng, (5, 35), "uint8"), bytes_of(rng, (17, 35), "int8")
    weight = weight // 2 if seven_bits else weight
    _, found = ran(multiplied(200), x, weight, packed_for, cpu, tmp_path)
    wanted = (x.astype(int) - 200) @ weight.astype(int).T
    np.testing.assert_array_equal(found, wanted.astype(F32) * F32(2.0**-11))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_of_few_bits_by_rows_of_levels(tmp_path, cpu, bits):
    """A group's largest number is 127, so that levels are what is given, and sums are exact."""

    def program(x, weight, scale, zero):
        levels = op.dequantize_groups(weight, scale, zero, bits=bits, group=32)
        return op.dense(op.fake_quantize_groups(x, group=32), levels)

    rng = np.random.default_rng(3)
    x = rng.integers(-127, 128, (5, 90)).astype(F32)
    x[:, ::32] = 127
    weight = rng.integers(0, 1 << bits, (21, 90), "uint8")
    weight[::4] = (1 << bits) - 1
    zero = rng.integers(0, 1 << bits, (21, 3)).astype("float16")
    plan, found = ran(
        program, x, weight, cpu, cpu, tmp_path, scale=np.ones((21, 3), "float16"), zero=zero
    )
    assert plan.levels.kind.startswith(KINDS[cpu])  # of fewer bits: bytes of 7
    wanted = x @ (weight - zero.astype(F32)[:, np.arange(90) // 32]).T
    np.testing.assert_array_equal(found, wanted)
