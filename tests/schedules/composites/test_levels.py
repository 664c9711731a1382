"""Levels of 8 bits: products of bytes are exact on every CPU, and quantised models are read so."""

import re

import numpy as np
import pytest
from harness import cpus, knows, needs_headers
from levels import F32, bytes_of, level, sums

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.machine import host, machine
from selfbyoc.machine.products import products_of
from selfbyoc.ops.rounded import round_away, round_even
from selfbyoc.partition.generation import ir
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import make_target, module_source, te
from selfbyoc.tvm.own_ops import BYTES_OF_7, dot, quotient

CPUS = (
    "llvm -mcpu=cascadelake", "llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell",
    "llvm -mcpu=nehalem",
)  # fmt: skip
TARGETS = cpus(None, "llvm -mcpu=haswell")
TARGETS += [
    pytest.param(*t.values, marks=[*t.marks, pytest.mark.slow], id=t.id)
    for t in cpus(*CPUS[:2], CPUS[3])
]


def conv(zero, out, groups=1, padding=1):
    """Levels to levels: scales are powers of two, so that no float step rounds but the last."""

    def program(x, weight):
        image, levels = op.dequantize(x, 2.0**-4, zero), op.dequantize(weight, 2.0**-7, 0)
        y = op.conv2d(image, levels, groups=groups, padding=padding)
        return op.quantize(op.relu(y), 0.37, 3, out_dtype=out)

    return program


def built(program, target=None, constants=(), **arrays):
    """-> the result, and the library."""
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    mod = emit(program, types, {name: arrays[name] for name in constants})
    library = selfbyoc.build(mod, target)
    (found,) = library(*(a for name, a in arrays.items() if name not in constants))
    return found, library


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("x", "weight", "groups", "padding"),
    [
        ((1, 64, 14, 14), (32, 64, 1, 1), 1, 0),
        ((2, 19, 9, 11), (21, 19, 3, 3), 1, 1),
        ((1, 12, 13, 10), (12, 1, 3, 3), 12, 1),
        ((1, 20, 8, 9), (12, 5, 3, 3), 4, 1),
        ((1, 16, 9, 8), (8, 4, 3, 3), 4, 1),  # one word a group
        ((1, 9, 8, 9), (6, 3, 3, 3), 3, 1),
        ((1, 3, 1, 1), (5, 3, 1, 1), 1, 0),
    ],
)
def test_convolutions_are_exact_on_every_cpu(target, x, weight, groups, padding):
    rng = np.random.default_rng(0)
    for dtype, zero in (("uint8", 131), ("int8", -9)):
        image, levels = bytes_of(rng, x, dtype), bytes_of(rng, weight, "int8")
        program = conv(zero, dtype, groups, padding)
        found, library = built(program, target, ("weight",), x=image, weight=levels)
        assert library.report.counts == {"conv2d_int8": 1}
        scaled = sums(image, levels, zero, groups, padding).astype(F32) * F32(2.0**-11)
        assert np.array_equal(found, level(np.maximum(scaled, 0), 0.37, 3, dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [(1,), (7,), (2, 19)])
def test_dense_is_exact_on_every_cpu(target, rows):
    rng = np.random.default_rng(1)
    x, weight = bytes_of(rng, (*rows, 130), "uint8"), bytes_of(rng, (37, 130), "uint8")

    def program(x, weight):
        left, right = op.dequantize(x, 2.0**-4, 77), op.dequantize(weight, 2.0**-7, 128)
        return op.dense(left, right)

    found, library = built(program, target, ("weight",), x=x, weight=weight)
    assert library.report.counts == {"dense_int8": 1}
    wanted = (x.astype("int64") - 77) @ (weight.astype("int64") - 128).T
    assert np.array_equal(found, wanted.astype(F32) * F32(2.0**-11))


def test_a_residual_joins_the_kernel():
    rng = np.random.default_rng(2)
    x, r = (bytes_of(rng, (1, c, 6, 7), "uint8") for c in (8, 12))
    weight = bytes_of(rng, (12, 8, 1, 1), "int8")

    def program(x, weight, r):
        y = op.conv2d(op.dequantize(x, 2.0**-4, 7), op.dequantize(weight, 2.0**-7, 0))
        y = op.dequantize(op.quantize(y, 0.25, 9, out_dtype="uint8"), 0.25, 9)
        y = op.relu(op.add(y, op.dequantize(r, 0.125, 100)))
        return op.quantize(y, 0.21, 0, out_dtype="uint8")

    found, library = built(program, None, ("weight",), x=x, weight=weight, r=r)
    assert library.report.counts == {"conv2d_int8": 1}
    assert len(library.report.matched[0].ops) == 9
    first = level(sums(x, weight, 7, padding=0).astype(F32) * F32(2.0**-11), 0.25, 9)
    total = (first.astype(F32) - 9) * F32(0.25) + (r.astype(F32) - 100) * F32(0.125)
    assert np.array_equal(found, level(np.maximum(total, 0), 0.21, 0))


def test_a_gate_of_levels_is_read_where_it_is():
    """Broadcast over the image: dequantised outside, for an element of it has another place."""
    rng = np.random.default_rng(9)
    x, gate = bytes_of(rng, (1, 8, 6, 7), "uint8"), bytes_of(rng, (1, 12, 1, 1), "uint8")
    weight = bytes_of(rng, (12, 8, 1, 1), "int8")

    def program(x, weight, gate):
        y = op.conv2d(op.dequantize(x, 2.0**-4, 7), op.dequantize(weight, 2.0**-7, 0))
        y = op.multiply(y, op.dequantize(gate, 2.0**-8, 0))
        return op.quantize(y, 0.21, 0, out_dtype="uint8")

    found, library = built(program, None, ("weight",), x=x, weight=weight, gate=gate)
    assert library.report.counts == {"conv2d_int8": 1}
    first = sums(x, weight, 7, padding=0).astype(F32) * F32(2.0**-11)
    assert np.array_equal(found, level(first * (gate.astype(F32) * F32(2.0**-8)), 0.21, 0))


@pytest.mark.parametrize("scale", [0.37, -0.37])
def test_limits_are_of_the_levels_whatever_the_sign(scale):
    rng = np.random.default_rng(10)
    x, weight = bytes_of(rng, (1, 8, 6, 7), "uint8"), bytes_of(rng, (12, 8, 1, 1), "int8")

    def program(x, weight):
        y = op.conv2d(op.dequantize(x, 2.0**-4, 7), op.dequantize(weight, 2.0**-7, 0))
        return op.quantize(y, scale, 100, out_dtype="uint8")

    found, library = built(program, None, ("weight",), x=x, weight=weight)
    assert len(library.report.matched[0].ops) == 4
    total = sums(x, weight, 7, padding=0).astype(F32) * F32(2.0**-11)
    assert np.array_equal(found, level(total, scale, 100))


def test_sums_that_may_leave_int32_are_refused():
    def program(x, weight):
        return op.dense(op.dequantize(x, 0.5, 0), op.dequantize(weight, 0.5, 0))

    types = {"x": ((1, 40000), "uint8"), "weight": ((2, 40000), "int8")}
    mod = emit(program, types, {"weight": np.ones((2, 40000), "int8")})
    found = selfbyoc.report(selfbyoc.partition_for_tefuse(mod))
    assert "dense_int8" not in found.counts
    assert any("may leave int32" in r.reason for r in found.records)


@pytest.mark.parametrize("zeros", [(7, 7), (0, 7), (3, 131)])
def test_equal_layers_are_one_kernel(zeros):
    """Whatever their scales, and whatever their zero points that are not 0."""
    scales = (0.5, 0.25, 0.037), (2.0, 1.5, 1.9)

    def program(x, weight, other):
        for w, (x_scale, w_scale, scale), zero in zip((weight, other), scales, zeros, strict=True):
            levels = op.dequantize(w, w_scale, 0)
            y = op.relu(op.dense(op.dequantize(x, x_scale, zero), levels))
            x = op.quantize(y, scale * 64, zero, out_dtype="uint8")
        return x

    rng = np.random.default_rng(4)
    x, *weights = (bytes_of(rng, (n, 33), d) for n, d in ((5, "uint8"), (33, "int8"), (33, "int8")))
    names = dict(zip(("weight", "other"), weights, strict=True))
    found, library = built(program, None, tuple(names), x=x, **names)
    assert library.report.counts == {"dense_int8": 2}
    for w, (x_scale, w_scale, scale), zero in zip(weights, scales, zeros, strict=True):
        total = (x.astype("int64") - zero) @ w.astype("int64").T
        x = level(np.maximum(total * (x_scale * w_scale), 0), scale * 64, zero)
    np.testing.assert_array_equal(found, x)
    mod = selfbyoc.partition_for_tefuse(
        emit(
            program,
            {"x": (x.shape, "uint8")} | {n: (w.shape, "int8") for n, w in names.items()},
            names,
        )
    )
    symbols = {str(f.attrs["global_symbol"]) for f in ir.external_functions(mod).values()}
    assert len(symbols) == 1 + (zeros[0] == 0)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 33])
@pytest.mark.parametrize("way", ["llvm -mcpu=haswell", "llvm -mcpu=cascadelake"])
def test_a_weight_that_was_packed_for_another_cpu(way, depth):
    """Whoever partitions without a target packs for this CPU, and may build for another one; the
    hook sees the other way round what an older machine packed.
    """
    here, there = way, "llvm -mcpu=nehalem" if "cascade" in way else "llvm -mcpu=cascadelake"
    if not host.runs(there):
        pytest.skip(f"this machine does not run {there}")

    def program(x, weight):
        return op.dense(op.dequantize(x, 0.5, 7), op.dequantize(weight, 0.25, 0))

    rng = np.random.default_rng(depth)
    x, weight = bytes_of(rng, (5, depth), "uint8"), bytes_of(rng, (17, depth), "int8")
    types = {"x": (x.shape, "uint8"), "weight": (weight.shape, "int8")}
    with make_target(here):
        mod = selfbyoc.partition_for_tefuse(emit(program, types, {"weight": weight}))
    library = selfbyoc.build(mod, there)
    assert library.report.counts == {"dense_int8": 1}
    total = (x.astype("int64") - 7) @ weight.astype("int64").T
    np.testing.assert_array_equal(library(x)[0], (total * 0.125).astype(F32))


def test_a_weight_that_is_an_input():
    """Packed in each call, with its sums, and by the kernel's own schedule."""

    def program(x, weight):
        return op.dense(op.dequantize(x, 0.5, 7), op.dequantize(weight, 0.25, 0))

    rng = np.random.default_rng(3)
    x, weight = bytes_of(rng, (7, 33), "uint8"), bytes_of(rng, (17, 33), "int8")
    found, library = built(program, None, (), x=x, weight=weight)
    assert not library.unscheduled
    total = (x.astype("int64") - 7) @ weight.astype("int64").T
    np.testing.assert_array_equal(found, (total * 0.125).astype(F32))


ARM = "llvm -mtriple=aarch64-linux-gnu -mcpu="
OTHERS = [
    *(f"{ARM}{name}" for name in ("neoverse-n1", "cortex-a72", "neoverse-v2", "apple-m2")),
    "llvm -mcpu=alderlake",
]
OTHERS = [target for target in OTHERS if knows(target)]  # LLVM 10 ends at the second
NAMES = {
    "avx512vnni": "vpdpbusd", "avxvnni": "vpdpbusd", "dotprod": "sdot", "i8mm": "usdot",
    "neon": "smlal",
}  # fmt: skip


@pytest.mark.parametrize("of_7_bits", [False, True])
@pytest.mark.parametrize("target", [*CPUS, *OTHERS])
def test_instructions_are_exact_ones(target, of_7_bits):
    """Never vpmaddubsw, which saturates, but for weights of 7 bits, and where nothing is better; on
    ARM nothing is moved or corrected in the loop.
    """
    cpu = machine(make_target(target))
    kind = cpu.products_of_7_bits if of_7_bits else cpu.products
    x, w = te.placeholder((64, 8), "int32", "x"), te.placeholder((8, 16), "int32", "w")
    k = te.reduce_axis((0, 8), "k")
    y = te.compute((64, 16), lambda i, j: te.sum(dot(kind, x[i, k], w[k, j]), axis=k), name="y")
    sch = selfbyoc.tvm.Schedule(te.create_prim_func([x, w, y]))
    block = selfbyoc.tvm.get_block(sch, "y")
    i, j, k = sch.get_loops(block)
    name = products_of(make_target(target), kind)
    lanes = {"avx512vnni": 16, "avx512bw": 16, "avx2": 8, "avxvnni": 8}.get(name, 4)
    outer, inner = sch.split(j, [None, lanes])
    sch.reorder(i, outer, k, inner)
    sch.vectorize(inner)
    sch.decompose_reduction(block, k)
    func = finished(sch.mod["main"], make_target(target)).with_attr("global_symbol", "main")
    code = module_source(machine_code(func, "main", make_target(target)), "asm")
    assert ("pmaddubsw" in code) == (kind == BYTES_OF_7 and name not in NAMES)
    assert NAMES.get(name, "pmaddwd") in code
    if name in ("dotprod", "i8mm", "neon"):
        vectors = 4 * 8  # of a row, whose loops LLVM unrolls
        found = re.findall(r"\s(u?sdot|smlal2?|smull2?)\s+v", code)
        assert len(found) == vectors * (2 if name == "neon" else 1)
        assert not re.search(r"\s(eor|mla|mul)\s+v", code)


ENDS = np.array([-np.inf, 0, np.inf], F32)


def _quotients(x, divisor):
    return te.compute(x.shape, lambda i: quotient(x(i), divisor(0)), name="y")


@pytest.mark.parametrize(("cpu", "divides"), [("haswell", False), ("skylake", True)])
def test_quotients_are_rounded_once(cpu, divides):
    """Bit for bit NumPy's, of divisors of every kind and dividends beside halves of them: by
    products where a division takes longer.
    """
    rng = np.random.default_rng(3)
    tensors = te.placeholder((4096,), "float32", "x"), te.placeholder((1,), "float32", "divisor")
    func = te.create_prim_func([*tensors, _quotients(*tensors)])
    sch = selfbyoc.tvm.Schedule(func)
    block = selfbyoc.tvm.get_block(sch, "y")
    sch.vectorize(sch.split(sch.get_loops(block)[0], [None, 8])[1])
    target = make_target(f"llvm -mcpu={cpu}")
    func = finished(sch.mod["main"], target).with_attr("global_symbol", "main")
    built = machine_code(func, "main", target)
    assert ("vdivps" in module_source(built, "asm")) is divides
    run = selfbyoc.tvm.get_func(built, "main")
    tame = rng.uniform(0.5, 1, 200) * 2.0 ** rng.integers(-60, 60, 200)
    hard = [1 - 2.0**-24, 1 + 2.0**-23, 0.1, 1 / 3, 1e-30, 3e30, 1e-40, 1e-45, 1.2e-38, 3e38, -0.3]
    with np.errstate(all="ignore"):
        for divisor in np.array([*tame, *hard, 0, np.nan, np.inf, -np.inf], F32):
            halves = (rng.integers(-1024, 1024, 4096) / 2 * float(divisor)).astype(F32)
            x = np.nextafter(halves, rng.choice(ENDS, 4096))
            x[~np.isfinite(x / divisor)] = 0  # limits come before
            out = selfbyoc.tvm.tensor(np.zeros(4096, F32))
            run(*map(selfbyoc.tvm.tensor, (x, np.array([divisor], F32))), out)
            found, wanted = out.numpy(), x / divisor
            # Below a level nothing is promised but that it is small.
            is_same = (found == wanted) | (np.abs(wanted) < 0.01) & (np.abs(found) < 0.01)
            assert (is_same | np.isnan(found) & np.isnan(wanted)).all(), divisor


@pytest.mark.parametrize("is_dense", [False, True])
def test_a_weight_of_many_bits_is_one_of_floats(is_dense):
    """Once, when it is built, beside a product of levels; and why is told."""

    def program(x, weight, other):
        image, levels = op.dequantize(x, 0.5, 0), op.dequantize(weight, 0.25, 0)
        if is_dense:
            return op.dense(op.dense(image, levels), other)
        middle = op.quantize(op.conv2d(image, levels), 8.0, 0, out_dtype="int8")
        return op.conv2d(op.dequantize(middle, 8.0, 0), op.dequantize(other, 0.5, 0))

    rng, last = np.random.default_rng(8), () if is_dense else (1, 1)
    x = bytes_of(rng, (5, 4, *([] if is_dense else [5, 5])), "uint8")
    weight = rng.integers(-300, 300, (3, 4, *last)).astype("int16")
    weight.flat[0] = 300
    other = bytes_of(rng, (6, 3, *last), "int8")
    other = other.astype(F32) if is_dense else other
    found, library = built(program, None, ("weight", "other"), x=x, weight=weight, other=other)
    counts = {"dense": 2} if is_dense else {"conv2d": 1, "conv2d_int8": 1}
    assert {n: c for n, c in library.report.counts.items() if n in counts} == counts
    assert library.report.left.get("dequantize", 0) < 2
    if is_dense:
        np.testing.assert_allclose(found, x * 0.5 @ (weight * 0.25).T @ other.T, rtol=1e-4)
        return
    first = level(sums(x, weight, 0, padding=0) * 0.125, 8.0, 0, "int8")
    np.testing.assert_array_equal(found, sums(first, other, 0, padding=0) * 4.0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("dtype", "w_zero"), [("uint8", 0), ("uint8", 255), ("int8", -77)])
def test_a_weight_off_its_middle_is_exact_on_every_cpu(target, dtype, w_zero):
    """Less its zero point it has nine bits: two products at a time."""
    rng = np.random.default_rng(9)
    image, rows = bytes_of(rng, (1, 19, 8, 9), "uint8"), bytes_of(rng, (7, 130), "int8")
    weight, matrix = bytes_of(rng, (12, 19, 3, 3), dtype), bytes_of(rng, (37, 130), dtype)

    def convolved(x, weight):
        levels = op.dequantize(weight, 2.0**-7, w_zero)
        return op.conv2d(op.dequantize(x, 2.0**-4, 131), levels, padding=1)

    def multiplied(x, weight):
        return op.dense(op.dequantize(x, 2.0**-4, 3), op.dequantize(weight, 2.0**-7, w_zero))

    found, library = built(convolved, target, ("weight",), x=image, weight=weight)
    assert library.report.counts == {"conv2d_int8": 1}
    wanted = sums(image, weight.astype("int64") - w_zero, 131)
    assert np.array_equal(found, wanted.astype(F32) * F32(2.0**-11))
    found, library = built(multiplied, target, ("weight",), x=rows, weight=matrix)
    assert library.report.counts == {"dense_int8": 1}
    wanted = (rows.astype("int64") - 3) @ (matrix.astype("int64") - w_zero).T
    assert np.array_equal(found, wanted.astype(F32) * F32(2.0**-11))


@pytest.mark.parametrize("rounded", [round_even, round_away])
def test_c_rounds_by_its_own_functions(rounded):
    """TVM 0.17's code generator for C knew none of them: no model of levels was built for C."""
    x = te.placeholder((8,), "float32", "x")
    y = te.compute((8,), lambda i: rounded(x[i]), name="y")
    func = te.create_prim_func([x, y]).with_attr("global_symbol", "main")
    target = make_target("c")
    source = module_source(machine_code(finished(func, target), "main", target))
    assert any(f"{name}f(" in source for name in ("nearbyint", "trunc", "round", "rint"))


@needs_headers()
@pytest.mark.parametrize("groups", [1, 6])
def test_sums_are_exact_in_c(compiler, tmp_path, groups):
    rng = np.random.default_rng(9)
    x = bytes_of(rng, (2, 6, 9, 7), "uint8")
    weight = bytes_of(rng, (12, 6 // groups, 3, 3), "int8")
    types = {"x": (x.shape, "uint8"), "weight": (weight.shape, "int8")}
    library = selfbyoc.build(emit(conv(131, "uint8", groups), types, {"weight": weight}), "c")
    assert library.report.counts == {"conv2d_int8": 1}
    library.export_library(tmp_path / "levels.so")
    (found,) = selfbyoc.load(tmp_path / "levels.so")(x)
    total = np.maximum(sums(x, weight, 131, groups) * 2.0**-11, 0)
    np.testing.assert_array_equal(found, level(total, 0.37, 3))


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("zero", [7, 300, -2])
def test_a_zero_point_beyond_the_levels_is_what_the_op_says(zero, is_constant):
    """Padding cannot hold it: a border is 0 all the same."""
    rng = np.random.default_rng(12)
    image = bytes_of(rng, (1, 8, 9, 11), "uint8")
    weight = bytes_of(rng, (6, 8, 3, 3), "int8")
    point = np.array(zero, "int32")

    def program(x, weight, point):
        at = op.dequantize(x, 2.0**-4, point)
        return op.conv2d(at, op.dequantize(weight, 2.0**-7, 0), padding=1)

    constants = ("weight", "point") if is_constant else ("weight",)
    found, library = built(program, None, constants, x=image, weight=weight, point=point)
    is_level = is_constant and zero == 7
    assert ("conv2d_int8" in library.report.counts) == is_level
    wanted = sums(image, weight, zero).astype(F32) * F32(2.0**-11)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-3)
