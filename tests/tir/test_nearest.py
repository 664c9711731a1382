"""Levels are what NumPy rounds to, in the instructions of the CPU."""

import numpy as np
import pytest
from levels import F32, bytes_of

import selfbyoc
from selfbyoc import op
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import GENERATION, get_block, get_func, make_target, module_source, te, tensor
from selfbyoc.tvm.own_ops import nearest

SIZE = 4099  # no whole number of vectors


def rounded(dtype, target, lanes):
    """A function of floats and a zero point, as vectors and a rest."""
    limits = np.iinfo(dtype)
    low, high = (te.const(int(v), "int32") for v in (limits.min, limits.max))
    x, zero = te.placeholder((SIZE,), "float32", "x"), te.placeholder((1,), "int32", "zero")
    y = te.compute((SIZE,), lambda i: nearest(x(i), zero(0), low, high).astype(dtype), name="y")
    sch = selfbyoc.tvm.Schedule(te.create_prim_func([x, zero, y]))
    sch.vectorize(sch.split(sch.get_loops(get_block(sch, "y"))[0], [None, lanes])[1])
    return finished(sch.mod["main"], target).with_attr("global_symbol", "main")


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("cpu", ["llvm -mcpu=haswell", "llvm -mcpu=nehalem", "llvm"])
@pytest.mark.parametrize("lanes", [4, 8])
def test_halves_go_to_even(dtype, cpu, lanes):
    target, limits = make_target(cpu), np.iinfo(dtype)
    run = get_func(machine_code(rounded(dtype, target, lanes), "main", target), "main")
    zero, rng = 3, np.random.default_rng(0)
    wanted = rng.integers(limits.min, limits.max + 1, SIZE) - zero
    off = rng.choice([0, 0.25, -0.25, 0.49, -0.49], SIZE)
    x = (wanted + off).astype(F32)
    even = wanted % 2 == 0
    x[even] += F32(0.5) * rng.choice([-1, 0, 1], int(even.sum())).astype(F32) * (off[even] == 0)
    found = tensor(np.zeros(SIZE, dtype))
    run(tensor(x), tensor(np.array([zero], "int32")), found)
    np.testing.assert_array_equal(found.numpy(), np.rint(x).astype("int64") + zero)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's kernels have no such vectors")
@pytest.mark.parametrize(
    ("cpu", "wanted", "unwanted"),
    [
        ("llvm -mcpu=haswell", ("vcvtps2dq", "vpackuswb"), ("vroundps", "vcvttps2dq")),
        ("llvm -mcpu=skylake-avx512", ("vcvtps2dq", "vpmovdb"), ("vrndscale",)),
        ("llvm -mtriple=aarch64-linux-gnu", ("frinti", "fcvtzs"), ()),
    ],
)
def test_instructions(cpu, wanted, unwanted):
    target = make_target(cpu)
    lanes = 16 if "skylake" in cpu else 4 if "aarch64" in cpu else 8
    code = module_source(machine_code(rounded("uint8", target, lanes), "main", target), "asm")
    vectors = code[: code.find("main.constructor")] if "main.constructor" in code else code
    assert all(name in vectors for name in wanted)
    lines = [line.split() for line in vectors.splitlines()]
    ops = [line[0] for line in lines if line and ("ymm" in line[-1] or "zmm" in line[-1])]
    assert not set(unwanted) & set(ops)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's quantize rounds halves away from zero")
@pytest.mark.parametrize("same", [True, False])
def test_a_level_that_is_a_number_at_once_is_no_byte(same):
    """As quantisers write it before a residual: the same scale, or another zero point."""
    rng = np.random.default_rng(1)
    x, r = bytes_of(rng, (1, 8, 9, 11), "uint8"), bytes_of(rng, (1, 20, 9, 11), "uint8")
    weight, other = bytes_of(rng, (20, 8, 1, 1), "int8"), 9 if same else 12

    def program(x, weight, r):
        y = op.conv2d(op.dequantize(x, 2.0**-4, 7), op.dequantize(weight, 2.0**-7, 0))
        y = op.dequantize(op.quantize(y, 0.25, 9, out_dtype="uint8"), 0.25, other)
        y = op.add(y, op.dequantize(r, 0.125, 100))
        return op.quantize(y, 0.21, 0, out_dtype="uint8")

    types = {"x": (x.shape, "uint8"), "weight": (weight.shape, "int8"), "r": (r.shape, "uint8")}
    library = selfbyoc.build(selfbyoc.emit(program, types, {"weight": weight}), cache=False)
    (found,) = library(x, r)
    assert library.report.counts == {"conv2d_int8": 1}
    total = np.einsum("nchw,oc->nohw", x.astype("int64") - 7, weight[:, :, 0, 0].astype("int64"))
    first = np.clip(np.rint(total * F32(2.0**-11) / F32(0.25)) + 9, 0, 255)
    value = (first - other) * F32(0.25) + (r.astype(F32) - 100) * F32(0.125)
    wanted = np.clip(np.rint(value.astype(F32) / F32(0.21)), 0, 255)
    np.testing.assert_array_equal(found, wanted)
