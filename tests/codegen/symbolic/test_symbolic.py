"""Kernels of symbolic sizes: built once, right for every size, in composites as well as outside."""

import itertools
import math
import warnings

import numpy as np
import pytest
from symbolic_programs import CASES, UNKNOWN, N, another, arrays, check, named, symbolic

import selfbyoc
from selfbyoc.codegen.symbolic import kernel
from selfbyoc.codegen.symbolic.empty import empties, is_right_at_zero, outputs_of
from selfbyoc.codegen.symbolic.families import families
from selfbyoc.codegen.symbolic.formula import Tiles, fitted_all
from selfbyoc.codegen.symbolic.learn import Example, learnt
from selfbyoc.codegen.symbolic.served import Served
from selfbyoc.errors import FallbackWarning, InputError, ScheduleError, SymbolicError
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.pattern import op
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION, Schedule, child_blocks, param_buffers, te, tir, tvm
from selfbyoc.tvm import symbolic as symbolic_sizes

SOME = (*range(1, 10), 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65, 97, 100, 128, 129, 200, 513, 700)
EVERY = (*range(1, 131), 197, 256, 300, 511, 512, 513, 700)


if GENERATION == "relay":
    del CASES["heads"], CASES["packed heads"]  # its batch_matmul has three axes
FAST = (
    "dense", "before other axes", "images", "heads" if GENERATION == "relax" else "softmax",
    "rows of any length", "layer_norm of any length", "masked products",
)  # fmt: skip


def rows():
    """A relu of n rows."""
    mod = emit(lambda x: op.relu(x), {"x": (UNKNOWN, 16)})
    return named(mod, {"x": (N, 16)})


@pytest.mark.parametrize("name", FAST)
def test_right_at_some_sizes(name):
    library = selfbyoc.build(symbolic(name))
    assert library.report.counts == {CASES[name][0]: 1}
    for size in SOME:
        check(name, library, size)


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_right_at_every_size(name, target):
    library = selfbyoc.build(symbolic(name), target)
    assert library.report.counts == {CASES[name][0]: 1}
    for size in EVERY:
        check(name, library, size)


@pytest.fixture
def learnt_families(monkeypatch):
    """The families that builds learn."""
    found = []

    def noted(*args):
        served = families(*args)
        found.extend(served.families)
        return served

    monkeypatch.setattr(kernel, "families", noted)
    monkeypatch.setattr(kernel, "_learnt", {})  # another test may have asked for the same
    return found


@pytest.mark.skipif(GENERATION == "relay", reason="its batch_matmul has three axes")
def test_keys_and_values_are_packed_for_large_sizes(learnt_families):
    library = selfbyoc.build(symbolic("packed heads"), "llvm -mcpu=haswell", cache=False)
    assert library.report.counts == {"attention_of_heads": 1}
    served = {family.decisions["packed"]: family for family in learnt_families}
    assert sorted(served) == [False, True]
    # Small examples have two formulas, of which a far one tells which is right.
    assert served[True].is_endless
    assert served[True].step == 1
    for size in (1, 9, 64, 127, 128, 129, 200, 389, 512, 700):
        check("packed heads", library, size)


def test_rows_in_parts(learnt_families):
    """Rows by a deep weight, more than L2 holds, come in parts; a last tile may have no rows."""
    library = selfbyoc.build(symbolic("deep"), "llvm -mcpu=haswell", cache=False)
    assert library.report.counts == {CASES["deep"][0]: 1}
    parts = {family.decisions["parts_of_rows"] for family in learnt_families}
    assert 1 in parts
    assert max(parts) > 1
    for size in (1, 7, 8, 95, 96, 97, 98, 129, *range(190, 206), 300, 385, 512, 700):
        check("deep", library, size)


@pytest.mark.parametrize("name", FAST)
def test_no_rows(name):
    library = selfbyoc.build(symbolic(name))
    given, _ = arrays(name, 0)
    (found,) = library(**given)
    assert found.size == 0
    assert found.ndim == library(**arrays(name, 2)[0])[0].ndim


def test_what_is_wrong_at_zero():
    """Whatever touches a tensor without elements has to be in a loop of no turns."""

    def rows(size, extent):
        x = te.placeholder((size, 4), "float32", "x")
        y = te.compute((extent, 4), lambda i, j: x[tir.min(i, size - 1), j], "y")
        return Example({"n": size}, te.create_prim_func([x, y]))

    every = learnt([rows(size, size) for size in (5, 8, 11)])
    last = learnt([rows(size, 3) for size in (5, 8, 11)])  # reads the last of no rows
    assert (is_right_at_zero(every, "n"), is_right_at_zero(last, "n")) == (True, False)
    n = tir.Var("n", "int32")
    for of, is_empty in ((every, True), (last, False)):
        func = of.function({"n": n})
        assert outputs_of(func) == [1]
        assert empties(n, [param_buffers(func)[1]]) is is_empty


def test_a_concatenation_reads_nothing_of_nothing():
    """Each of its elements is of one part; of the other it has a branch that is never taken."""

    def joined(size):
        x = te.placeholder((size, 4), "float32", "x")
        y = te.placeholder((3, 4), "float32", "y")
        both = te.compute(
            (size + 3, 4),
            lambda i, j: tir.if_then_else(i >= size, y[i - size, j], x[i, j]),
            "both",
        )
        return Example({"n": size}, te.create_prim_func([x, y, both]))

    assert is_right_at_zero(learnt([joined(size) for size in (5, 8, 11)]), "n")


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_sum_of_nothing_begins_outside_of_its_loop(is_begun):
    """In it, its result is what the memory held."""

    def summed(size):
        x = te.placeholder((size, 4), "float32", "x")
        row = te.reduce_axis((0, size))
        y = te.compute((4,), lambda j: te.sum(x[row, j], row), "y")
        sch = Schedule(tvm.IRModule({"main": te.create_prim_func([x, y])}))
        if is_begun:
            (block,) = child_blocks(sch)
            sch.decompose_reduction(block, sch.get_loops(block)[1])
        return Example({"n": size}, sch.mod["main"])

    found = learnt([summed(size) for size in (5, 8, 11)])
    assert is_right_at_zero(found, "n") is is_begun


B = "b"
# Of a batch and a length: what they are, a program, its arguments.
OF_TWO = {
    "dense": (
        {"dense": 1}, lambda x, w: op.add(op.relu(op.dense(x, w)), x),
        {"x": (B, N, 33), "w": (33, 33)},
    ),
    "a weight turned": (
        {"dense": 1}, lambda x, w: op.dense(x, op.transpose(w)), {"x": (B, N, 6), "w": (6, 38)},
    ),
    "a batch between": (
        {"dense": 1}, lambda x, w: op.dense(x, w), {"x": (B, 3, N, 6), "w": (38, 6)},
    ),
    "layer_norm": (
        {"layer_norm": 1}, lambda x, g, b: op.layer_norm(x, g, b, axis=2),
        {"x": (B, N, 33), "g": (33,), "b": (33,)},
    ),
    "something of each place": (
        None, lambda x, w, at: op.add(op.dense(x, w), at),
        {"x": (B, N, 33), "w": (33, 33), "at": (1, N, 33)},
    ),
    "softmax over places": (None, lambda x: op.softmax(x, axis=1), {"x": (B, N, 33)}),
    "softmax of places": ({"softmax": 1}, lambda x: op.softmax(x), {"x": (B, N)}),
}  # fmt: skip
FAST_OF_TWO = ("dense", "layer_norm")


@pytest.mark.parametrize(
    "name", [n if n in FAST_OF_TWO else pytest.param(n, marks=pytest.mark.slow) for n in OF_TWO]
)
def test_a_batch_and_a_length(name):
    """Rows are rows, of whatever image: such kernels are of the product. What knows of the batch or
    of the length is not.
    """
    counts, program, args = OF_TWO[name]
    rng = np.random.default_rng(0)
    weights = {a: rng.standard_normal(s).astype("float32") for a, s in args.items() if N not in s}

    def made(batch, length):
        known = {B: batch, N: length}
        shapes = {a: tuple(known.get(e, e) for e in s) for a, s in args.items() if N in s}
        return emit(program, shapes, weights)

    with warnings.catch_warnings():
        if counts is None:
            warnings.simplefilter("ignore")  # of what is left out
        library = selfbyoc.build(made(another(), UNKNOWN))
    assert counts is None or library.report.counts == counts
    for batch, size in itertools.product((1, 2, 3, 9, 61), (1, 2, 7, 8, 33, 100)):
        graph = ir.read(emit(program, {
            a: tuple({B: batch, N: size}.get(e, e) for e in s) for a, s in args.items()
        })["main"])  # fmt: skip
        given = {
            v.name: rng.standard_normal(v.shape).astype("float32")
            for v in graph.inputs if v.name not in weights
        }  # fmt: skip
        (wanted,) = evaluate(graph, [{**given, **weights}[v.name] for v in graph.inputs])
        found = library(**given)[0]
        assert first_wrong(found, np.asarray(wanted), "float32", 100) is None, (batch, size)
    if name == "dense":
        assert library(np.zeros((0, 7, 33), "float32"))[0].shape == (0, 7, 33)
        assert library(np.zeros((7, 0, 33), "float32"))[0].shape == (7, 0, 33)


def test_a_file_and_the_cache(tmp_path):
    first = selfbyoc.build(symbolic("dense"), cache=tmp_path / "cache")
    again = selfbyoc.build(symbolic("dense"), cache=tmp_path / "cache")
    assert (len(first.cache.misses), len(again.cache.hits)) == (1, 1)
    again.export_library(tmp_path / "dense.so")
    loaded = selfbyoc.load(tmp_path / "dense.so")
    for library in (again, loaded):
        check("dense", library, 41)
    assert loaded.sizes == {"n": (None, ((0, 1),))}


def formula_of(points, values, *constants):
    """What values are that stand beside these constants in a kernel."""
    columns = [tuple(values), *((c,) * len(points) for c in constants)]
    return fitted_all(points, columns)[columns[0]]


def test_formulas():
    points = [{"n": size} for size in (53, 67, 83, 98, 131)]
    tiles = [-(-p["n"] // 6) * 4 - 3 for p in points]
    found = formula_of(points, tiles, 6, 16)
    assert found.tiles == {Tiles(("n",), 6)}
    assert [found.at({"n": size}) for size in (1, 6, 7)] == [1, 1, 5]
    assert formula_of(points, [p["n"] % 5 for p in points], 5) is None
    assert formula_of(points, tiles, 16) is None  # 6 is no integer of the kernel


def test_formulas_of_two_sizes():
    points = [{"m": m, "n": n} for m, n in ((2, 9), (61, 20), (28, 45), (3, 102), (5, 7))]
    joined = formula_of(points, [2 * p["m"] + p["n"] - 3 for p in points])
    assert joined.at({"m": 10, "n": 100}) == 117
    assert joined.tiles == {Tiles(("m",)), Tiles(("n",))}
    assert formula_of(points, [max(p["m"], p["n"]) for p in points]) is None


def test_formulas_of_so_many_times_a_size():
    """The blocks of 7 * n queries that share keys."""
    points = [{"n": n, "m": m} for n, m in ((5, 27), (61, 256), (38, 53), (17, 98), (38, 131))]
    rows, blocks = ([f(7 * p["n"]) for p in points] for f in (int, lambda n: -(-n // 32) * 3 + 1))
    columns = [tuple(rows), tuple(blocks), (32,) * len(points)]
    found = fitted_all(points, columns)[columns[1]]
    assert found.tiles == {Tiles(("n",), 32, 0, 7)}
    assert [found.at({"n": n, "m": 1}) for n in (1, 4, 5)] == [4, 4, 7]
    assert fitted_all(points, columns[1:])[columns[1]] is None  # 7 is no integer of the kernel


def test_formulas_of_windows():
    """Of a pooled row, floor(n / 2), and of its tiles of 16."""
    points = [{"n": size} for size in (53, 67, 83, 98, 131, 150, 179, 64, 104, 95, 96, 97, 98)]
    pooled = formula_of(points, [p["n"] // 2 for p in points], 2, 16)
    assert [pooled.at({"n": size}) for size in (1, 2, 3)] == [0, 1, 1]
    tiles = formula_of(points, [-(-(p["n"] // 2) // 16) for p in points], 2, 16)
    assert [tiles.at({"n": size}) for size in (1, 2, 33, 34, 65, 66)] == [0, 1, 1, 2, 2, 3]


def test_formulas_of_two():
    points = [{"b": b, "n": n} for b, n in ((2, 53), (3, 67), (5, 83), (17, 98), (3, 131))]
    found = formula_of(points, [p["b"] * -(-p["n"] // 8) + 1 for p in points], 8)
    assert found.at({"b": 4, "n": 17}) == 13
    found = formula_of(points, [-(-p["b"] * p["n"] // 8) for p in points], 8)
    assert found.at({"b": 3, "n": 3}) == 2


def test_schedules_that_differ_in_more_than_sizes():
    """A user's composite whose schedule has other loops for every size."""

    def schedule(sch, ops, target):
        row, _ = sch.get_loops(ops.relu.block)
        for _ in range(math.isqrt(37 * int(sch.get(row).extent)) % 7):
            row = sch.split(row, [1, None])[1]

    mine = selfbyoc.Composite("mine", lambda x: op.relu(x), schedule=schedule)
    with pytest.warns(FallbackWarning, match=r"composite mine: no kernel of n=.*n symbolic"):
        library = selfbyoc.build(rows(), composites=[mine])
    assert library.report.counts == {}
    x = np.random.default_rng(0).standard_normal((5, 16)).astype("float32")
    np.testing.assert_array_equal(library(x)[0], np.maximum(x, 0))


def test_a_users_composite():
    """One schedule that is the same for every size."""

    def schedule(sch, ops, target):
        row, column = sch.get_loops(ops.relu.block)
        sch.parallel(row)
        sch.vectorize(column)

    mine = selfbyoc.Composite("mine", lambda x: op.relu(x), schedule=schedule)
    library = selfbyoc.build(rows(), composites=[mine])
    assert library.report.counts == {"mine": 1}
    for size in (1, 2, 7, 8, 9, 100, 1000):
        x = np.random.default_rng(size).standard_normal((size, 16)).astype("float32")
        np.testing.assert_array_equal(library(x)[0], np.maximum(x, 0))


def _copying(raises):
    """A composite whose schedule raises where this says so of the rows."""

    def schedule(sch, ops, target):
        row, column = sch.get_loops(ops.relu.block)
        if raises(int(sch.get(row).extent)):
            raise ValueError("no such rows")
        sch.vectorize(column)

    return selfbyoc.Composite("mine", lambda x: op.relu(x), schedule=schedule)


def test_a_schedule_that_raises_at_a_size_that_nobody_asked_for():
    """What it makes of other sizes serves that one too."""
    library = selfbyoc.build(rows(), composites=[_copying(lambda rows: rows == 3)])
    assert library.report.counts == {"mine": 1}
    x = np.random.default_rng(0).standard_normal((3, 16)).astype("float32")
    np.testing.assert_array_equal(library(x)[0], np.maximum(x, 0))


def test_a_schedule_that_raises_at_most_sizes():
    with pytest.warns(FallbackWarning, match=r"composite mine.* n=.*no such rows|no kernel of n="):
        library = selfbyoc.build(rows(), composites=[_copying(lambda rows: rows < 50)])
    x = np.random.default_rng(0).standard_normal((3, 16)).astype("float32")
    np.testing.assert_array_equal(library(x)[0], np.maximum(x, 0))


def test_a_schedule_that_raises_at_every_size():
    with pytest.raises(ScheduleError, match="no such rows") as raised:
        selfbyoc.build(rows(), composites=[_copying(lambda rows: True)])
    assert not isinstance(raised.value, SymbolicError)


def test_more_elements_than_an_index_reaches(monkeypatch, tmp_path):
    monkeypatch.setattr(symbolic_sizes, "MOST", 1500)  # 28 rows: in tiles of any height
    monkeypatch.setattr(kernel, "_learnt", {})
    library = selfbyoc.build(symbolic("dense"), cache=tmp_path)
    check("dense", library, 14)
    text = r"a tensor of shape \(1, .*n.*\): expected at most 1500 elements"
    with pytest.raises(InputError, match=text):
        library(np.zeros((1, 32, 33), "float32"))


def test_what_stands_for_no_other_size():
    """A family of every 64th size leaves those between out, though the table has none of them."""
    whole = {size: 0 if size < 300 else -1 for size in (*range(9, 129), 192, 256, 320, 512)}
    of_all = {(64, 0): dict.fromkeys((64, 128, 192, 256, 320, 512), 1)}
    assert Served([], whole, of_all).gaps == [320, 512]
    every = {(2, rest): dict.fromkeys(range(10 + rest, 513, 2), rest) for rest in (0, 1)}
    assert Served([], whole, every).gaps == []
