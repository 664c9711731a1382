"""One row of floats by weights of few bits: one block of columns at a time, in partial sums."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.machine import host
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import make_target


def program(bits, group, is_gated):
    def dense(x, *weight):
        return op.dense(x, op.dequantize_groups(*weight, bits=bits, group=group))

    def one(x, levels, scale, zero):
        return dense(x, levels, scale, zero)

    def gated(x, levels, scale, zero, levels_2, scale_2, zero_2):
        return op.multiply(
            op.silu(dense(x, levels, scale, zero)), dense(x, levels_2, scale_2, zero_2)
        )

    return gated if is_gated else one


def made(rows, depth, units, bits, group, is_gated=False):
    """-> the module, and its weights."""
    rng, values, weights = np.random.default_rng(1), {}, []
    for end in ("", "_2")[: 1 + is_gated]:
        groups = -(-depth // group)
        levels = rng.integers(0, 1 << bits, (units, depth), "uint8")
        scale = rng.uniform(0.01, 0.02, (units, groups)).astype("float16")
        zero = rng.integers(0, 1 << bits, (units, groups), "uint8")
        values |= {f"levels{end}": levels, f"scale{end}": scale, f"zero{end}": zero}
        wide, point = (a.astype("float64")[:, np.arange(depth) // group] for a in (scale, zero))
        weights.append((levels - point) * wide)
    types = {name: (array.shape, str(array.dtype)) for name, array in values.items()}
    inputs = {"x": ((rows, depth), "float32"), **types}
    return selfbyoc.emit(program(bits, group, is_gated), inputs, values), weights


def tile(cpu, rows=1):
    target = make_target(f"llvm -mcpu={cpu}")
    mod = selfbyoc.partition_for_tefuse(made(rows, 256, 200, 4, 32)[0], target=target)
    plan = kernels(mod)[0].schedule(target)[0].plan.product
    return plan.wide, plan.partial


def test_half_of_the_sums_that_keep_the_core_busy():
    assert tile("cascadelake") == (1, 4)
    assert tile("icelake-client") == tile("haswell") == (1, 2)
    wide, partial = tile("x86-64")  # a block is four vectors
    assert (wide > 1, partial) == (True, 1)
    wide, partial = tile("cascadelake", rows=2)
    assert (wide > 1, partial) == (True, 1)


@pytest.mark.parametrize("is_gated", [False, True])
@pytest.mark.parametrize(
    ("depth", "bits", "group"),
    [(200, 4, 32), (64, 4, 8), (40, 8, 32), (8, 8, 8), (300, 4, 128), (512, 8, 128)],
)
@pytest.mark.parametrize("cpu", ["haswell", ""])
def test_results(cpu, depth, bits, group, is_gated):
    target = make_target(f"llvm -mcpu={cpu}") if cpu else selfbyoc.host_target()
    if not host.runs(target):
        pytest.skip("no AVX2")
    mod, weights = made(1, depth, 75, bits, group, is_gated)
    library = selfbyoc.build(mod, target)
    assert library.report.counts == {"gated_few_bits" if is_gated else "dense_few_bits": 1}
    x = np.random.default_rng(2).standard_normal((1, depth)).astype("float32")
    first, *second = (x.astype("float64") @ weight.T for weight in weights)
    wanted = first / (1 + np.exp(-first)) * second[0] if is_gated else first
    assert first_wrong(library(x)[0], wanted, "float32", 2 * depth) is None
