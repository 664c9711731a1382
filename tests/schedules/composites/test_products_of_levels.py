"""Products of levels that are both computed: exact on every CPU, and read from quantised models."""

import numpy as np
import pytest
from harness import cpus
from levels import F32, bytes_of, level

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.machine import machine
from selfbyoc.schedules.kernels.matmul.quantized import plan
from selfbyoc.tvm import GENERATION, make_target

TARGETS = cpus(None)
TARGETS += [
    pytest.param(*t.values, marks=[*t.marks, pytest.mark.slow], id=t.id)
    for t in cpus("llvm -mcpu=haswell", "llvm -mcpu=nehalem", "llvm -mcpu=cascadelake")
]
RELAX = pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
USED = {"batch_matmul_int8": 1}


def built(program, target=None, **arrays):
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    library = selfbyoc.build(emit(program, types, {}), target)
    assert library.report.counts == USED
    assert not library.unscheduled
    (found,) = library(*arrays.values())
    return found


def product(zeros, **attrs):
    """Scales are powers of two, so that no float step rounds."""

    def program(x, y):
        left, right = op.dequantize(x, 2.0**-4, zeros[0]), op.dequantize(y, 2.0**-7, zeros[1])
        return op.batch_matmul(left, right, **attrs)

    return program


def sums(x, y, zeros, turned=(False, False)):
    wide = [a.astype("int64") - zero for a, zero in zip((x, y), zeros, strict=True)]
    left, right = (a.swapaxes(-1, -2) if t else a for a, t in zip(wide, turned, strict=True))
    return left @ right


def sides(rng, size, turned, dtypes):
    batch, rows, depth, columns = size
    x = (*batch, depth, rows) if turned[0] else (*batch, rows, depth)
    y = (*batch, columns, depth) if turned[1] else (*batch, depth, columns)
    return [bytes_of(rng, s, d) for s, d in zip((x, y), dtypes, strict=True)]


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("size", "dtypes", "zeros"),
    [
        (((3,), 13, 19, 45), ("uint8", "uint8"), (117, 131)),
        (((2,), 1, 64, 8), ("uint8", "int8"), (255, -128)),
        (((2,), 20, 1, 3), ("int8", "int8"), (-128, 127)),
        (((1,), 37, 50, 1), ("int8", "uint8"), (5, 0)),
        (((5,), 6, 33, 70), ("uint8", "uint8"), (0, 255)),
    ],
)
def test_sums_are_exact_on_every_cpu(size, dtypes, zeros, turned, target):
    x, y = sides(np.random.default_rng(0), size, turned, dtypes)
    attrs = dict(zip(("transpose_a", "transpose_b"), turned, strict=True))
    found = built(product(zeros, **attrs), target, x=x, y=y)
    assert np.array_equal(found, sums(x, y, zeros, turned).astype(F32) * F32(2.0**-11))


def test_the_longest_sums_fit():
    """All levels at the ends of their range, as far from the zero points as they can be."""
    depth = (2**31 - 1) // 255**2
    x, y = np.full((1, 2, depth), 255, "uint8"), np.full((1, depth, 4), -128, "int8")
    found = built(product((0, 127)), x=x, y=y)
    assert np.array_equal(found, sums(x, y, (0, 127)).astype(F32) * F32(2.0**-11))


@RELAX
@pytest.mark.parametrize(
    ("x", "y"),
    [((2, 3, 9, 8), (2, 3, 8, 21)), ((2, 1, 9, 7), (1, 3, 7, 21)), ((4, 9, 8), (1, 8, 21))],
)
def test_batches_are_broadcast(x, y):
    rng = np.random.default_rng(1)
    x, y = bytes_of(rng, x, "uint8"), bytes_of(rng, y, "uint8")
    found = built(product((3, 200)), x=x, y=y)
    assert np.array_equal(found, sums(x, y, (3, 200)).astype(F32) * F32(2.0**-11))


def test_what_follows_joins():
    """A scale, a mask and the next quantizer, as of the scores of attention."""
    rng = np.random.default_rng(2)
    x, y = bytes_of(rng, (2, 11, 30), "uint8"), bytes_of(rng, (2, 30, 45), "uint8")
    mask = np.where(rng.random((2, 11, 45)) < 0.2, -1e4, 0).astype(F32)

    def program(x, y, mask):
        levels = op.quantize(product((9, 140))(x, y), 0.25, 9, out_dtype="uint8")
        scores = op.dequantize(levels, 0.25, 9)
        return op.quantize(op.add(op.multiply(scores, 0.5), mask), 0.5, 100, out_dtype="uint8")

    found = built(program, x=x, y=y, mask=mask)
    scores = level(sums(x, y, (9, 140)).astype(F32) * F32(2.0**-11), 0.25, 9)
    scores = (scores.astype(F32) - 9) * F32(0.25)
    assert np.array_equal(found, level(scores * F32(0.5) + mask, 0.5, 100))


def test_scales_and_zero_points_may_be_data():
    rng = np.random.default_rng(3)
    x, y = bytes_of(rng, (2, 9, 21), "uint8"), bytes_of(rng, (2, 21, 12), "uint8")
    scales = np.array([[0.03], [0.07]], F32)
    zero = "uint8" if GENERATION == "relax" else "int32"

    def program(x, x_scale, x_zero, y, y_scale, y_zero):
        right = op.dequantize(y, y_scale, y_zero)
        return op.batch_matmul(op.dequantize(x, x_scale, x_zero), right)

    points = np.array(201, zero), np.array(17, zero)
    left, right = (np.array(s[0]) for s in scales)
    left_side, right_side = (
        {side: levels, f"{side}_scale": scale, f"{side}_zero": point}
        for side, levels, scale, point in zip("xy", (x, y), (left, right), points, strict=True)
    )
    found = built(program, **left_side, **right_side)
    assert np.array_equal(found, sums(x, y, (201, 17)).astype(F32) * (left * right))


def test_one_value_on_both_sides():
    x = bytes_of(np.random.default_rng(4), (2, 23, 41), "int8")

    def program(x):
        floats = op.dequantize(x, 2.0**-4, -7)
        return op.batch_matmul(floats, floats, transpose_b=True)

    wanted = sums(x, x, (-7, -7), (False, True)).astype(F32) * F32(2.0**-8)
    assert np.array_equal(built(program, x=x), wanted)


def test_equal_products_are_one_kernel():
    """Whatever their scales are."""
    from selfbyoc.partition.generation import ir

    def program(x, y):
        first = op.quantize(product((7, 9))(x, y), 0.5, 3, out_dtype="uint8")
        left, right = op.dequantize(first, 0.5, 3), op.dequantize(y, 0.3, 9)
        return op.quantize(op.batch_matmul(left, right), 0.7, 4, out_dtype="uint8")

    types = {"x": ((2, 9, 12), "uint8"), "y": ((2, 12, 12), "uint8")}
    mod = selfbyoc.partition_for_tefuse(emit(program, types, {}))
    assert selfbyoc.report(mod).counts == {"batch_matmul_int8": 2}
    functions = ir.external_functions(mod).values()
    assert len({str(f.attrs["global_symbol"]) for f in functions}) == 1


def test_attention_of_float_scores_is_taken_first():
    def program(q, k, v):
        left, right = op.dequantize(q, 0.02, 7), op.dequantize(k, 0.02, 7)
        scores = op.batch_matmul(left, right, transpose_b=True)
        return op.batch_matmul(op.softmax(scores), op.dequantize(v, 0.02, 7))

    types = {"q": ((2, 9, 16), "uint8"), "k": ((2, 8, 16), "uint8"), "v": ((2, 8, 16), "uint8")}
    found = selfbyoc.report(selfbyoc.partition_for_tefuse(emit(program, types, {})))
    assert found.counts == {"attention": 1}


def refused(program, **types):
    mod = emit(program, types, {})
    found = selfbyoc.report(selfbyoc.partition_for_tefuse(mod))
    assert "batch_matmul_int8" not in found.counts
    return " ".join(record.reason for record in found.records)


def test_sums_that_may_leave_int32_are_refused():
    types = {"x": ((1, 5, 33100), "uint8"), "y": ((1, 33100, 4), "uint8")}
    assert "sums of 33100 products of bytes may leave int32" in refused(product((0, 0)), **types)


def test_a_zero_point_that_is_no_level_is_refused():
    types = {"x": ((1, 5, 8), "int8"), "y": ((1, 8, 4), "uint8")}
    assert "200, which is no level of int8" in refused(product((200, 0)), **types)


def test_scales_of_rows_are_refused():
    def program(x, scale, y):
        left = op.dequantize(x, scale, 0, axis=1)
        return op.batch_matmul(left, op.dequantize(y, 0.5, 0))

    types = {"x": ((1, 5, 8), "uint8"), "scale": (5,), "y": ((1, 8, 4), "uint8")}
    assert "not one element" in refused(program, **types)


@pytest.mark.parametrize("mcpu", ["x86-64", "haswell", "skylake-avx512", "cascadelake"])
def test_a_register_is_left_where_a_sum_is_an_instruction_of_its_own(mcpu):
    from types import SimpleNamespace

    cpu = machine(make_target({"kind": "llvm", "mcpu": mcpu, "num-cores": 2}))
    x, y, out = (12, 128, 64), (12, 64, 128), (12, 128, 128)
    matmul = SimpleNamespace(
        name="m", kind="batch_matmul", attrs={"transpose_a": False, "transpose_b": False},
        inputs=[(x, ""), (y, "")], outputs=[(out, "")],
    )  # fmt: skip
    found = plan(SimpleNamespace(of=lambda kind: [matmul] if kind == matmul.kind else []), cpu)
    tile, apart = found.product.tile, cpu.product("pairs").apart
    assert tile.sums + tile.vectors + 2 * apart + (not cpu.broadcasts) <= cpu.vector_registers
    assert found.product.depth == 32
