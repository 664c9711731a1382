"""Vectors of a result that fill no register are whole ones that overlap; others stay."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tir.overlaps import with_overlaps
from selfbyoc.tvm import get_block, get_func, make_target, te, tensor, tir, walk

TARGET = make_target("llvm -mcpu=haswell")  # 8 lanes


def vectors(func):
    found = []

    def visit(loop):
        if loop.kind == tir.ForKind.VECTORIZED:
            found.append(int(loop.extent))

    walk(func.body, visit, "For")
    return found


def scheduled(width, rows=3):
    """y = (x + 1) * 2 in two stages, each of them in vectors of a row."""
    x = te.placeholder((rows, width), "float32", "x")
    a = te.compute((rows, width), lambda i, j: x(i, j) + 1, name="a")
    y = te.compute((rows, width), lambda i, j: a(i, j) * 2, name="y")
    sch = selfbyoc.tvm.Schedule(te.create_prim_func([x, y]))
    for name in ("a", "y"):
        sch.vectorize(sch.get_loops(get_block(sch, name))[-1])
    return sch.mod["main"]


@pytest.mark.parametrize(
    ("width", "wanted"),
    [(5, [5]), (8, [8]), (9, [8, 8]), (14, [8, 8]), (16, [16]), (28, [8] * 4), (31, [8] * 4)],
)
def test_only_vectors_of_the_result(width, wanted):
    """A stage's memory may be the other's: what was written is no longer what was read."""
    func = scheduled(width)
    assert vectors(with_overlaps(func, TARGET)) == [width, *wanted]
    code = machine_code(finished(func, TARGET).with_attr("global_symbol", "main"), "main", TARGET)
    x = np.random.default_rng(0).standard_normal((3, width)).astype("float32")
    found = tensor(np.zeros_like(x))
    get_func(code, "main")(tensor(x), found)
    np.testing.assert_array_equal(found.numpy(), (x + 1) * 2)


def test_sums_are_not_added_twice():
    x = te.placeholder((6, 14), "float32", "x")
    k = te.reduce_axis((0, 6), "k")
    y = te.compute((14,), lambda j: te.sum(x(k, j), axis=k), name="y")
    sch = selfbyoc.tvm.Schedule(te.create_prim_func([x, y]))
    block = get_block(sch, "y")
    j, k = sch.get_loops(block)
    sch.reorder(k, j)
    sch.vectorize(j)
    sch.vectorize(sch.get_loops(sch.decompose_reduction(block, k))[-1])
    func = sch.mod["main"]
    assert vectors(with_overlaps(func, TARGET)) == [8, 8, 14]
    code = machine_code(finished(func, TARGET).with_attr("global_symbol", "main"), "main", TARGET)
    x, found = np.arange(84, dtype="float32").reshape(6, 14), tensor(np.zeros(14, "float32"))
    get_func(code, "main")(tensor(x), found)
    np.testing.assert_array_equal(found.numpy(), x.sum(0))
