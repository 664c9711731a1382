"""One row of levels by weights of few bits: how it reads them from memory."""

import re

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.machine import host
from selfbyoc.ops.few_bits import levels_of_rows
from selfbyoc.tir.prefetch import with_prefetch
from selfbyoc.tvm import make_target

GROUP = 32


def program(bits, is_gated):
    def dense(x, levels, scale, zero):
        weight = op.dequantize_groups(levels, scale, zero, bits=bits, group=GROUP)
        return op.dense(op.fake_quantize_groups(x, group=GROUP), weight)

    def gated(x, levels, scale, zero, levels_2, scale_2, zero_2):
        return op.multiply(
            op.silu(dense(x, levels, scale, zero)), dense(x, levels_2, scale_2, zero_2)
        )

    return gated if is_gated else dense


def made(rows, depth, units, bits, is_gated=False):
    """-> the module, and its weights."""
    rng, values, weights = np.random.default_rng(1), {}, []
    for end in ("", "_2")[: 1 + is_gated]:
        levels = rng.integers(0, 1 << bits, (units, depth), "uint8")
        scale = rng.uniform(0.01, 0.02, (units, -(-depth // GROUP))).astype("float16")
        zero = np.full((1, 1), 1 << (bits - 1), "uint8")
        values |= {f"levels{end}": levels, f"scale{end}": scale, f"zero{end}": zero}
        each = scale.astype("float64")[:, np.arange(depth) // GROUP]
        weights.append((levels.astype("float64") - zero) * each)
    types = {name: (array.shape, str(array.dtype)) for name, array in values.items()}
    inputs = {"x": ((rows, depth), "float32"), **types}
    return selfbyoc.emit(program(bits, is_gated), inputs, values), weights


def planned(mod, cpu):
    """-> the plan of its kernel, and the kernel with what it prefetches."""
    target = make_target(f"llvm -mcpu={cpu}")
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    program, scheduled = kernel.schedule(target)
    return program.plan, str(with_prefetch(scheduled.mod["main"]))


@pytest.mark.parametrize(
    ("cpu", "depth", "bits", "wide", "ahead"),
    [
        ("haswell", 256, 4, 1, 24),
        ("haswell", 4096, 4, 4, 24),  # of 32 KB a block
        ("haswell", 4064, 4, 1, 24),
        ("haswell", 2048, 8, 4, 24),
        ("skylake-avx512", 256, 4, 1, 24),
        ("cascadelake", 4096, 4, 1, 0),  # which multiplies in no time
        ("cascadelake", 256, 8, 1, 0),
    ],
)
def test_short_blocks_are_one_stream(cpu, depth, bits, wide, ahead):
    plan, told = planned(made(1, depth, 256, bits)[0], cpu)
    assert (plan.product.wide, plan.ahead) == (wide, ahead)
    assert ("prefetch" in told) == (ahead > 0)


@pytest.mark.parametrize(("cpu", "is_wide"), [("haswell", False), ("cascadelake", True)])
def test_several_rows_share_the_blocks_that_they_read(cpu, is_wide):
    plan, told = planned(made(64, 256, 256, 4)[0], cpu)
    assert (plan.product.wide > 1) == is_wide  # a block is two vectors of AVX2
    assert not plan.ahead
    assert "prefetch" not in told


def test_of_a_gated_layer_both_weights_are_asked_for():
    _, told = planned(made(1, 256, 256, 4, is_gated=True)[0], "haswell")
    asked = set(re.findall(r"prefetch\([^\n]*?(\w+)\[", told))
    assert len(asked) == 2, told


@pytest.mark.parametrize("is_gated", [False, True])
@pytest.mark.parametrize("depth", [200, 4160])  # of which one block is read at a time, and four
@pytest.mark.parametrize("cpu", ["haswell", ""])
def test_results(cpu, depth, is_gated):
    target = make_target(f"llvm -mcpu={cpu}") if cpu else selfbyoc.host_target()
    if not host.runs(target):
        pytest.skip("no AVX2")
    mod, weights = made(1, depth, 75, 4, is_gated)
    library = selfbyoc.build(mod, target)
    assert library.report.counts == {"gated_few_bits" if is_gated else "dense_few_bits": 1}
    x = np.random.default_rng(2).standard_normal((1, depth)).astype("float32")
    levels, unit = levels_of_rows(x, GROUP)
    first, *second = ((levels * unit.astype("float64")) @ weight.T for weight in weights)
    wanted = first / (1 + np.exp(-first)) * second[0] if is_gated else first
    np.testing.assert_allclose(library(x)[0], wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())
