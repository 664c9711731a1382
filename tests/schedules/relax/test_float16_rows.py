"""Tiles of products by weights of float16, which become floats: one block of columns where the CPU
reads an element of a row as an operand in memory; and the results of each such kernel.
"""

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


def made(program, other, rows, dtype="float16"):
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((UNITS, DEPTH)).astype(dtype)}
    if other == "up":
        weights["up"] = rng.standard_normal((UNITS, DEPTH)).astype(dtype)
    if other == "gamma":
        weights["gamma"] = rng.standard_normal(DEPTH).astype("float32")
    return selfbyoc.emit(program, {"x": (rows, DEPTH)}, weights), weights


def product(program, other, rows, target):
    mod, _ = made(program, other, rows)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=make_target(target)))
    plan = kernel.schedule(make_target(target))[0].plan
    return getattr(plan, "product", plan)


@pytest.mark.parametrize(("program", "other"), PROGRAMS)
def test_several_tiles_are_one_block_wide(program, other):
    for rows in (9, 16, 37, 128):
        assert product(program, other, rows, ZEN4).wide == 1
    for rows in (1, 5, 8):  # one tile, for which nothing is prefetched
        assert product(program, other, rows, ZEN4).wide > 1
    # Eight sums keep no core busy that multiplies two vectors a cycle.
    assert product(program, other, 128, "llvm -mcpu=cascadelake").wide > 1
    # A block is two vectors already.
    assert product(program, other, 128, "llvm -mcpu=haswell").tile.size == (6, 2)


@pytest.mark.parametrize(("program", "other"), PROGRAMS)
@pytest.mark.parametrize("rows", [1, 8, 9, 16, 37])
def test_results(program, other, rows):
    mod, weights = made(program, other, rows)
    x = np.random.default_rng(1).standard_normal((rows, DEPTH)).astype("float32")
    lib = selfbyoc.build(mod)
    assert sum(lib.report.counts.values()) == 1
    assert difference(*lib(x), reference(x, weights), "float32", 2 * DEPTH) is None


def reference(x, weights):
    x, given = x.astype("float64"), {n: w.astype("float64") for n, w in weights.items()}
    if "gamma" in given:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * given["gamma"]
    y = x @ given["w"].T
    return y / (1 + np.exp(-y)) * (x @ given["up"].T) if "up" in given else y
