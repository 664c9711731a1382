"""Integers of 32 bits wrap around before anything wider is made of them."""

import numpy as np
import pytest
from onnx_models import model, value

import selfbyoc
from selfbyoc.tvm import te, walk
from selfbyoc.tvm.wrapping import with_wrapping

INT32, INT64, BOOL = 6, 7, 9
X = np.random.default_rng(0).integers(-60000, 60000, 37).astype("int32")
PROGRAMS = {
    "a square as int64": ([("Mul", ["x", "x"], "s", {}), ("Cast", ["s"], "y", {"to": 7})], INT64),
    "its sign": ([("Mul", ["x", "x"], "s", {}), ("Less", ["s", "x"], "y", {})], BOOL),
    "the sum of squares": (
        [
            ("Mul", ["x", "x"], "s", {}),
            ("Cast", ["s"], "w", {"to": 7}),
            ("ReduceSum", ["w"], "y", {"keepdims": 1}),
        ],
        INT64,
    ),
    "differences": (
        [
            ("Mul", ["x", "x"], "s", {}),
            ("Sub", ["x", "s"], "d", {}),
            ("Cast", ["d"], "y", {"to": 7}),
        ],
        INT64,
    ),
}
with np.errstate(over="ignore"):
    SQUARE = X * X
    WANTED = {
        "a square as int64": SQUARE.astype("int64"),
        "its sign": SQUARE < X,
        "the sum of squares": SQUARE.astype("int64").sum(keepdims=True),
        "differences": (X - SQUARE).astype("int64"),
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_numpy(name):
    nodes, kind = PROGRAMS[name]
    wanted = WANTED[name]
    proto = model(nodes, [value("x", INT32, 37)], [value("y", kind, *wanted.shape)])
    (found,) = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(X)
    np.testing.assert_array_equal(found, wanted)


def casts(expression, dtype):
    x = te.placeholder((8,), dtype, name="x")
    found = []
    func = te.create_prim_func([x, te.compute((8,), lambda i: expression(x(i), i))])
    walk(with_wrapping(func).body, found.append, "Cast")
    return len(found)


@pytest.mark.parametrize(
    ("expression", "dtype", "count"),
    [
        (lambda x, i: x * x, "int32", 3),
        (lambda x, i: x * x, "int64", 0),
        (lambda x, i: x * x, "float32", 0),
        (lambda x, i: x & (i * 3), "int32", 0),
    ],
    ids=["read", "as wide as can be", "floats", "of places"],
)
def test_what_is_computed_in_more_bits(expression, dtype, count):
    assert casts(expression, dtype) == count


def test_what_a_reduction_keeps_stays():
    x = te.placeholder((8, 4), "int32", name="x")
    k = te.reduce_axis((0, 4), name="k")
    func = te.create_prim_func([x, te.compute((8,), lambda i: te.sum(x(i, k), axis=k))])
    assert with_wrapping(func).same_as(func)
