"""Vectors that a test cuts off are whole where all lanes are inside, and right elsewhere; products
whose rows and columns are one open size.
"""

import math

import numpy as np
import pytest
from symbolic_programs import UNKNOWN, N, named

import selfbyoc
from selfbyoc.ir.emit import emit
from selfbyoc.language.pattern import op
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tir import lowering
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tir.whole_vectors import with_whole_vectors
from selfbyoc.tvm import (
    GENERATION,
    get_block,
    get_func,
    make_target,
    structural_equal,
    te,
    tensor,
    tir,
    walk,
)  # fmt: skip

DEPTH = 9
VECTORIZED = int(tir.ForKind.VECTORIZED)


@pytest.fixture
def changed(monkeypatch):
    """Of each function that is finished: whether it has such vectors."""
    seen = []

    def noted(func):
        made = with_whole_vectors(func)
        seen.append(not structural_equal(made, func))
        return made

    monkeypatch.setattr(lowering, "with_whole_vectors", noted)
    return seen


def product(x, y):
    return op.relu(op.batch_matmul(x, y))


def check(library, batch, rows, columns, turned=False):
    rng = np.random.default_rng(rows + columns)
    x = rng.standard_normal((batch, rows, DEPTH)).astype("float32")
    y = rng.standard_normal((batch, DEPTH, columns)).astype("float32")
    wanted = np.maximum(x.astype("float64") @ y, 0)
    given = np.ascontiguousarray(y.swapaxes(1, 2)) if turned else y
    assert first_wrong(library(x, given)[0], wanted, "float32", DEPTH) is None


@pytest.mark.parametrize("columns", [15, 17, 33, 50, 97, 150])
@pytest.mark.parametrize("rows", [1, 13])
def test_columns_that_fill_no_vector(rows, columns, changed):
    shapes = {"x": (2, rows, DEPTH), "y": (2, DEPTH, columns)}
    library = selfbyoc.build(emit(product, shapes), cache=False)
    assert library.report.counts == {"batch_matmul": 1}
    if columns > 64:  # of one panel a row is one vector
        assert any(changed)
    check(library, 2, rows, columns)


@pytest.mark.parametrize(
    ("columns", "widths"),
    [(97, []), (98, []), (100, [4]), (101, [4]), (102, [4]), (103, [4])],
)
def test_as_many_columns_in_each_last_vector_are_smaller_vectors(columns, widths):
    func = te.create_prim_func(_copied(columns))
    sch = selfbyoc.tvm.Schedule(func)
    sch.vectorize(sch.split(sch.get_loops(get_block(sch, "y"))[0], [None, 8])[1])
    made = with_whole_vectors(sch.mod["main"])
    found = []

    def visit(loop):
        if int(loop.kind) == VECTORIZED:
            found.append(int(loop.extent))

    walk(made.body, visit, "For")
    assert sorted(found, reverse=True) == [8, *widths]
    target = make_target("llvm")
    code = machine_code(
        finished(sch.mod["main"], target).with_attr("global_symbol", "main"), "main", target
    )
    x, y = np.arange(columns, dtype="float32"), tensor(np.zeros(columns, "float32"))
    get_func(code, "main")(tensor(x), y)
    np.testing.assert_array_equal(y.numpy(), x + 1)


def _copied(columns):
    x = te.placeholder((columns,), "float32", "x")
    return [x, te.compute((columns,), lambda i: x(i) + 1, name="y")]


def test_whole_columns_stay(changed):
    library = selfbyoc.build(emit(product, {"x": (2, 7, DEPTH), "y": (2, DEPTH, 64)}), cache=False)
    assert changed
    assert not any(changed)
    check(library, 2, 7, 64)


def test_memory_that_is_read_by_such_vectors(changed):
    """Two dense layers of 49 columns did not compile: of memory that is read under an `if` TVM
    (0.27) took a loop's variable outside of it.
    """

    def program(x, w, b, v, c):
        hidden = op.gelu(op.bias_add(op.dense(x, w), b))
        return op.bias_add(op.dense(hidden, v), c)

    shapes = {"x": (3, 1), "w": (1, 1), "b": (1,), "v": (49, 1), "c": (49,)}
    library = selfbyoc.build(emit(program, shapes), cache=False)
    assert library.report.counts == {"dense_gelu_dense": 1}
    assert any(changed)
    rng = np.random.default_rng(0)
    x, w, b, v, c = (rng.standard_normal(s).astype("float32") for s in shapes.values())
    h = (x.astype("float64") @ w.T + b).ravel()
    h = (0.5 * h * (1 + np.array([math.erf(e / math.sqrt(2)) for e in h]))).reshape(3, 1)
    assert first_wrong(library(x, w, b, v, c)[0], h @ v.T + c, "float32", 2) is None


@pytest.mark.skipif(GENERATION == "relay", reason="two Any of Relay are two sizes")
@pytest.mark.parametrize("turned", [False, True])
def test_as_many_columns_as_rows(turned):
    """Queries times keys of one sentence. Its sums had memory of 2**31 - 1 elements, and a sentence
    of 9 words ended the process.
    """

    def program(x, y):
        return op.relu(op.batch_matmul(x, y, transpose_b=turned))

    y = (2, N, DEPTH) if turned else (2, DEPTH, N)
    unknown = tuple(UNKNOWN if extent == N else extent for extent in y)
    mod = emit(program, {"x": (2, UNKNOWN, DEPTH), "y": unknown})
    library = selfbyoc.build(named(mod, {"x": (2, N, DEPTH), "y": y}), cache=False)
    assert library.report.counts == {"batch_matmul": 1}
    assert not [r for r in library.report.records if r.cause == "fallback"], str(library.report)
    for size in (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 97, 130, 257):
        check(library, 2, size, size, turned)
