"""Tiles of products by weights of float16, which become floats: one block of columns where the CPU
reads an element of a row as an operand in memory; partial sums of one row; and the results of each
such kernel.
"""

import math

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.runtime.tolerance import difference
from selfbyoc.tvm import make_target

ZEN4 = "llvm -mcpu=znver4"
DEPTH, UNITS = 96, 190


def floats(w):
    return op.cast(w, dtype="float32")


def dense(x, w):
    return op.dense(x, floats(w))


def gated(x, w, up):
    return op.multiply(op.silu(op.dense(x, floats(w))), op.dense(x, floats(up)))


def normal(x, w, gamma):
    return op.dense(op.rms_norm(x, gamma, epsilon=1e-5), floats(w))


PROGRAMS = [(dense, ""), (gated, "up"), (normal, "gamma")]


def made(program, other, rows, depth=DEPTH):
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((UNITS, depth)).astype("float16")}
    if other == "up":
        weights["up"] = rng.standard_normal((UNITS, depth)).astype("float16")
    if other == "gamma":
        weights["gamma"] = rng.standard_normal(depth).astype("float32")
    return selfbyoc.emit(program, {"x": (rows, depth)}, weights), weights


def product(program, other, rows, target, depth=DEPTH):
    mod, _ = made(program, other, rows, depth)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=make_target(target)))
    plan = kernel.schedule(make_target(target))[0].plan
    return getattr(plan, "product", plan)


@pytest.mark.parametrize(("program", "other"), PROGRAMS)
def test_several_tiles_are_one_block_wide(program, other):
    for rows in (9, 16, 37, 128):
        assert product(program, other, rows, ZEN4).wide == 1
    for rows in (2, 5, 8):  # one tile, for which nothing is prefetched
        assert product(program, other, rows, ZEN4).wide > 1
    # Eight sums keep no core busy that multiplies two vectors a cycle.
    assert product(program, other, 128, "llvm -mcpu=cascadelake").wide > 1
    # A block is two vectors already.
    assert product(program, other, 128, "llvm -mcpu=haswell").tile.size == (6, 2)


@pytest.mark.parametrize(("program", "other"), PROGRAMS)
def test_one_row_has_as_many_sums_as_keep_the_core_busy(program, other):
    def sums(cpu, depth=DEPTH):
        plan = product(program, other, 1, f"llvm -mcpu={cpu}", depth)
        return plan.wide, plan.partial, plan.tile.vectors

    assert sums("znver4") == (1, 4, 1)
    assert sums("cascadelake") == (1, 8, 1)
    assert sums("cascadelake", 98) == (1, 7, 1)
    assert sums("haswell") == (1, 4, 2)
    # No number of partial sums divides these: the blocks beside the first keep the core busy.
    for cpu, depth in (("znver4", 95), ("cascadelake", 97), ("haswell", 98)):
        wide, partial, _ = sums(cpu, depth)
        assert wide > 1 == partial
    assert sums("x86-64")[1:] == (1, 8)  # a block is four vectors
    assert product(program, other, 2, ZEN4).partial == 1


@pytest.mark.parametrize(("program", "other"), PROGRAMS)
@pytest.mark.parametrize("rows", [1, 8, 9, 16, 37])
def test_results(program, other, rows):
    check(program, other, rows)


@pytest.mark.parametrize(("program", "other"), PROGRAMS)
@pytest.mark.parametrize("depth", [1, 7, 95, 97, 98, 1000])
@pytest.mark.parametrize("target", [None, "llvm -mcpu=haswell"])
def test_results_of_one_row(program, other, depth, target):
    check(program, other, 1, depth, target)


def check(program, other, rows, depth=DEPTH, target=None):
    mod, weights = made(program, other, rows, depth)
    x = np.random.default_rng(1).standard_normal((rows, depth)).astype("float32")
    lib = selfbyoc.build(mod, target and make_target(target))
    assert sum(lib.report.counts.values()) == 1
    assert difference(*lib(x), reference(x, weights), "float32", 2 * depth) is None


def reference(x, weights):
    x, given = x.astype("float64"), {n: w.astype("float64") for n, w in weights.items()}
    if "gamma" in given:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * given["gamma"]
    y = x @ given["w"].T
    return y / (1 + np.exp(-y)) * (x @ given["up"].T) if "up" in given else y


def two(x, w1, b1, w2, b2):
    hidden = op.gelu(op.bias_add(op.dense(x, floats(w1)), b1, axis=-1))
    return op.bias_add(op.dense(hidden, floats(w2)), b2, axis=-1)


@pytest.mark.parametrize(("depth", "hidden", "units"), [(96, 200, 190), (95, 97, 33), (64, 1, 5)])
def test_results_of_two_layers_of_one_row(depth, hidden, units):
    rng = np.random.default_rng(0)
    w1, w2 = (
        (rng.standard_normal(shape) / 8).astype("float16")
        for shape in ((hidden, depth), (units, hidden))
    )
    b1, b2 = (rng.standard_normal(n).astype("float32") for n in (hidden, units))
    x = rng.standard_normal((1, depth)).astype("float32")
    lib = selfbyoc.build(
        selfbyoc.emit(two, {"x": x.shape}, {"w1": w1, "b1": b1, "w2": w2, "b2": b2})
    )
    assert lib.report.counts == {"dense_gelu_dense": 1}
    h = x.astype("float64") @ w1.T.astype("float64") + b1
    h = h / 2 * (1 + np.vectorize(math.erf)(h / math.sqrt(2)))
    expected = h @ w2.T.astype("float64") + b2
    assert difference(*lib(x), expected, "float32", depth + hidden) is None
