"""Products of bfloat16 by `bfdot`, under qemu-user, and of words that another CPU's plan packed."""

import sys
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from bfloat16_models import convolved
from harness import served

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.analysis.verify.run import Runner
from selfbyoc.codegen.cache.kernels import using
from selfbyoc.machine import host
from selfbyoc.runtime.tolerance import difference
from selfbyoc.schedules.kernels.conv.rounded import RoundedPlan
from selfbyoc.tvm import make_target
from selfbyoc.tvm.own_ops import BFLOATS

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from other_cpus import aarch64  # isort: skip

BF16 = ml_dtypes.bfloat16
ZEN4, ARM = "llvm -mcpu=znver4", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-"


def ran(x, weight, packed_for, cpu, folder, product=op.dense):
    """The one kernel's plan, and its result on a CPU; its weight was packed for one, too."""
    types = {"x": (x.shape, "float32"), "weight": (weight.shape, "bfloat16")}
    mod = selfbyoc.emit(
        lambda x, weight: product(x, op.half_weight(weight)), types, {"weight": weight}
    )
    return ran_model(mod, [x], packed_for, cpu, folder)


def ran_model(mod, arrays, packed_for, cpu, folder):
    """The same of a model whose inputs have a shape each."""
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=packed_for))
    target = make_target(cpu)
    inputs = kernel.source.graph.inputs
    by_shape = {array.shape: array for array in arrays}
    constants = kernel.calls[0]
    given = [
        constants[n] if n in constants else by_shape[value.shape] for n, value in enumerate(inputs)
    ]
    with using(False):
        if host.runs(target):
            runner = Runner(kernel.source, target)
        else:
            served(aarch64.cannot_run())
            runner = aarch64.Emulated(kernel.source, target, folder)
        (found,) = runner(given)
    return kernel.schedule(target)[0].plan, found


CPUS = pytest.mark.parametrize(
    ("packed_for", "cpu"),
    [
        (f"{ARM}v2", f"{ARM}v2"),  # by bfdot
        (ZEN4, f"{ARM}v2"),
        (ZEN4, f"{ARM}n1"),  # which has none
        (f"{ARM}v2", "llvm -mcpu=haswell"),
    ],
)


@CPUS
@pytest.mark.parametrize(("rows", "depth", "units"), [(7, 131, 37), (33, 2, 520), (1, 64, 48)])
def test_numbers(tmp_path, packed_for, cpu, rows, depth, units):
    rng = np.random.default_rng(0)
    x, weight = (
        rng.standard_normal(shape).astype(BF16) for shape in ((rows, depth), (units, depth))
    )
    plan, found = ran(x.astype("float32"), weight, packed_for, cpu, tmp_path)
    assert plan.products == BFLOATS
    wanted = x.astype("float64") @ weight.astype("float64").T
    assert difference(found, wanted, "float32", depth) is None


@CPUS
@pytest.mark.parametrize(
    ("image", "kernel", "stride"),
    [
        ((1, 33, 28, 28), (20, 33, 1, 1), 1),
        ((2, 40, 7, 7), (35, 40, 1, 1), 1),
        ((1, 35, 7, 6), (48, 35, 3, 3), 2),
    ],
)
def test_convolutions(tmp_path, packed_for, cpu, image, kernel, stride):
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal(shape).astype(BF16) for shape in (image, kernel))
    padding = kernel[2] // 2
    product = partial(op.conv2d, strides=stride, padding=padding)
    plans, found = ran(x.astype("float32"), weight, packed_for, cpu, tmp_path, product)
    assert [type(plan) for _, plan in plans.plans] == [RoundedPlan]
    wanted = convolved(x, weight, stride, padding)
    assert difference(found, wanted, "float32", int(np.prod(kernel[1:]))) is None


@CPUS
@pytest.mark.parametrize("channels", [64, 67])
def test_around_a_depthwise_convolution(tmp_path, packed_for, cpu, channels):
    """What is rounded there has few bits: an element is as the model has it."""
    rng = np.random.default_rng(0)
    x, expand, point = (
        rng.integers(-3, 4, shape).astype(BF16)
        for shape in ((1, 19, 9, 8), (channels, 19, 1, 1), (40, channels, 1, 1))
    )
    depth = rng.integers(-1, 2, (channels, 1, 3, 3)).astype("float32")

    def block(x, expand, depth, point):
        y = op.clip(op.conv2d(x, op.half_weight(expand)), a_min=0, a_max=6)
        y = op.relu(op.conv2d(y, depth, groups=channels, padding=1))
        return op.conv2d(y, op.half_weight(point))

    given = {"expand": expand, "depth": depth, "point": point}
    types = {name: (array.shape, str(array.dtype)) for name, array in given.items()}
    mod = selfbyoc.emit(block, {"x": (x.shape, "float32"), **types}, given)
    plan, found = ran_model(mod, [x.astype("float32")], packed_for, cpu, tmp_path)
    assert plan.words == (True, True)
    y = np.clip(convolved(x, expand), 0, 6)
    y = np.maximum(convolved(y, depth, 1, 1, channels), 0)
    np.testing.assert_array_equal(found, convolved(y, point))


@pytest.mark.parametrize(("rows", "keys", "depth", "columns"), [(33, 51, 19, 37), (64, 48, 32, 16)])
def test_attention(tmp_path, rows, keys, depth, columns):
    """Scores are integers, and powers of them the only ones that are rounded."""
    rng = np.random.default_rng(0)
    shapes = [(2, rows, depth), (2, keys, depth), (2, keys, columns)]
    q, k, v = (rng.integers(-1, 2, shape).astype("float32") for shape in shapes)

    def program(q, k, v):
        scores = op.batch_matmul(q, op.half_factor(k), transpose_b=True)
        return op.batch_matmul(op.softmax(scores), op.half_factor(v))

    types = {name: (side.shape, "float32") for name, side in (("q", q), ("k", k), ("v", v))}
    cpu = f"{ARM}v2"
    plan, found = ran_model(selfbyoc.emit(program, types), [q, k, v], cpu, cpu, tmp_path)
    assert plan.words
    scores = q @ k.swapaxes(-1, -2)
    power = np.exp(scores - scores.max(-1, keepdims=True))
    rounded = power.astype(BF16).astype("float64") @ v
    wanted = rounded / power.sum(-1, keepdims=True, dtype="float64")
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5)
