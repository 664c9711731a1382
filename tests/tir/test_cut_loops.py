"""Loops that end at a number which is computed before them."""

import numpy as np
import pytest

from selfbyoc.tir.cut_loops import COUNT, cut_by
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import Schedule, get_block, get_func, make_target, te, tensor, tir

ROWS, MOST = 6, 40


def run(lengths, step, is_marked=True):
    """The sum of the first elements of each row, in whole steps."""
    x = te.placeholder((ROWS, MOST), "float32", name="x")
    length = te.placeholder((ROWS,), "int32", name="length")
    count = te.compute(
        (ROWS,), lambda i: tir.floordiv(length[i] + step - 1, step) * step, name="count"
    )
    k = te.reduce_axis((0, MOST), name="k")
    sums = te.compute((ROWS,), lambda i: te.sum(x[i, k], axis=k), name="sums")
    zero = tir.const(0, "float32")
    out = te.compute((ROWS,), lambda i: tir.Select(count[i] > 0, sums[i], zero), name="out")
    sch = Schedule(te.create_prim_func([x, length, out]).with_attr("global_symbol", "main"))
    (row,) = sch.get_loops(get_block(sch, "out"))
    sch.compute_at(get_block(sch, "sums"), row, preserve_unit_loops=True)
    sch.compute_at(get_block(sch, "count"), row, preserve_unit_loops=True, index=-2)  # before them
    *_, along = sch.get_loops(get_block(sch, "sums"))
    outer, _ = sch.split(along, [None, step])
    cut_by(sch, outer, step)
    if is_marked:
        sch.annotate(get_block(sch, "count"), COUNT, 1)
    sch.parallel(row)
    target = make_target("llvm")
    func = finished(sch.mod["main"], target).with_attr("target", target)
    built = machine_code(func, "main", target)
    given = np.random.default_rng(1).standard_normal((ROWS, MOST)).astype("float32")
    found = tensor(np.zeros(ROWS, "float32"))
    get_func(built, "main")(tensor(given), tensor(np.array(lengths, "int32")), found)
    return found.numpy(), given


@pytest.mark.parametrize("step", [1, 4, 8])
def test_a_loop_ends_at_the_count(step):
    lengths = [1, 3, 17, 39, 40, 400]
    found, given = run(lengths, step)
    ends = [-(-n // step) * step for n in lengths]
    wanted = [row[:n].sum(dtype="float64") for n, row in zip(ends, given, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_without_a_count_a_loop_goes_on():
    found, given = run([1] * ROWS, 4, is_marked=False)
    np.testing.assert_allclose(found, given.sum(1, dtype="float64"), rtol=1e-5, atol=1e-6)
