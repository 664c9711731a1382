"""A few neighbours, repeated over the lanes of a vector: one short load for TVM 0.17's LLVM 10."""

import numpy as np
import pytest

from selfbyoc.tvm import te, tensor, tir, tvm
from selfbyoc.tvm.rewrite import with_broadcasts

LANES = 16


def function(count, first=0):
    """out[i] = 2 * x[i // 16 * 8 + first + i % 16 % count], in vectors of 16 lanes."""
    x = te.placeholder((40,), "float32", name="x")
    out = te.compute(
        (64,), lambda i: x[i // LANES * 8 + first + i % LANES % count] * 2.0, name="out"
    )
    sch = tir.Schedule(te.create_prim_func([x, out]))
    (i,) = sch.get_loops(sch.get_block("out"))
    sch.vectorize(sch.split(i, [None, LANES])[1])
    return tvm.lower(sch.mod)["main"]


@pytest.mark.parametrize(
    ("count", "first", "shuffled"),
    [(4, 0, True), (2, 3, True), (8, 1, True), (16, 0, False), (3, 0, False), (1, 2, False)],
)
def test_repeated_neighbours(count, first, shuffled):
    before = function(count, first)
    after = with_broadcasts(before)
    assert ("Shuffle" in after.script()) == shuffled
    built = tvm.build(tvm.IRModule({"main": after}), target="llvm")
    x = np.random.default_rng(0).standard_normal(40).astype("float32")
    out = tensor(np.zeros(64, "float32"))
    built["main"](tensor(x), out)
    i = np.arange(64)
    np.testing.assert_array_equal(out.numpy(), 2 * x[i // LANES * 8 + first + i % LANES % count])
