"""Modules of Relax with symbols: errors that name them, bounds, and what no composite takes."""

import itertools

import numpy as np
import pytest
from symbolic_programs import check, symbolic
from tvm import relax

import selfbyoc
from selfbyoc.errors import FallbackWarning, InputError, ScheduleError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import tir


def test_sizes_that_disagree():
    library = selfbyoc.build(symbolic("heads"))
    heads = np.zeros((1, 5, 2, 16), "float32")
    text = "size n: expected one size, found 5 in axis 1 of input 'q' and 7 in axis 3 of input"
    with pytest.raises(InputError, match=text):
        library(heads, heads, heads, np.zeros((1, 1, 1, 7), "float32"))


def test_a_size_over_the_bound():
    mod = symbolic("dense")
    main = mod["main"].with_attr("tir_var_upper_bound", {"n": 40})
    mod.update_func(mod.get_global_var("main"), main)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense": 1}
    for size in (1, 8, 9, 33, 40):
        check("dense", library, size)
    with pytest.raises(InputError, match="size n: expected at most 40, found 41 in axis 1 of"):
        library(np.zeros((1, 41, 33), "float32"))


@pytest.mark.parametrize("bound", [None, 40])
def test_memory_is_planned_for_the_bound(bound):
    """Two products, and what lies between them: as many rows as were promised."""
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 33), "float32"))
    weights = [
        relax.Var(name, relax.TensorType(shape, "float32"))
        for name, shape in (("w", (17, 33)), ("v", (3, 17)))
    ]
    builder = relax.BlockBuilder()
    attrs = {} if bound is None else {"tir_var_upper_bound": {"n": bound}}
    with builder.function("main", [x, *weights], attrs=attrs):
        with builder.dataflow():
            y = x
            for weight in weights:
                y = builder.emit(relax.op.matmul(y, relax.op.permute_dims(weight)))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    library = selfbyoc.build(builder.get())
    assert library.report.counts == {"dense": 2}
    assert library.memory == (None if bound is None else 4 * 17 * bound)


def test_what_is_left_is_scheduled():
    """Ops outside of composites, their sizes symbolic: with our default schedule, and right."""
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 33), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.multiply(relax.op.sin(x), x))
            y = builder.emit_output(relax.op.sum(y, axis=[1]))
        builder.emit_func_output(y)
    library = selfbyoc.build(builder.get())
    assert library.unscheduled == {}
    for size in (1, 2, 3, 8, 33, 200):
        x = np.random.default_rng(size).standard_normal((size, 33)).astype("float32")
        wanted = (np.sin(x) * x).sum(axis=1)
        assert first_wrong(library(x)[0], wanted, "float32", 33) is None, size


def test_two_symbols_outside_of_composites():
    """The batch is any, as much as the length is; each of them may be 1."""
    batch, n = tir.Var("batch", "int64"), tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((batch, n, 33), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.multiply(relax.op.sin(x), x))
            y = builder.emit_output(relax.op.sum(y, axis=[1]))
        builder.emit_func_output(y)
    library = selfbyoc.build(builder.get())
    assert library.unscheduled == {}
    for batch, size in itertools.product((1, 2, 9, 61, 70), (0, 1, 2, 8, 33, 200)):
        x = np.random.default_rng(size).standard_normal((batch, size, 33)).astype("float32")
        wanted = (np.sin(x) * x).sum(axis=1)
        assert first_wrong(library(x)[0], wanted, "float32", 200) is None, (batch, size)


def test_no_rows_to_reduce():
    """A kernel that is no sum of nothing says so; one that is, is right."""
    library = selfbyoc.build(rows_summed(tir.Var("n", "int64"), 33, axis=[0]))
    assert library.unscheduled == {}
    np.testing.assert_array_equal(library(np.zeros((0, 33), "float32"))[0], np.zeros(33))


def rows_summed(*shape, axis):
    """A program of one sum, of sizes that may be symbolic."""
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.sum(x, axis=axis))
        builder.emit_func_output(y)
    return builder.get()


def test_no_rows_to_reduce_as_tvm_has_it(monkeypatch):
    """TVM starts a sum in the loop over what is summed: of nothing it would be what was there."""

    def raises(*_):
        raise ScheduleError("not today")

    monkeypatch.setattr("selfbyoc.schedules.default.schedule", raises)
    with pytest.warns(FallbackWarning, match="sum runs as serial loops, .*: not today"):
        library = selfbyoc.build(rows_summed(tir.Var("n", "int64"), 33, axis=[0]))
    assert library.unscheduled == {"sum": "not today"}
    library(np.full((7, 33), 5, "float32"))  # what the memory was
    np.testing.assert_array_equal(library(np.zeros((0, 33), "float32"))[0], np.zeros(33))


def test_an_extent_that_follows_from_a_symbol():
    """Keys of a cache that grows. A kernel finds no n in n + 1, and all of n + 1."""
    n = tir.Var("n", "int64")
    types = {"x": (2, 3, 8), "y": (2, n, 8), "z": (2, 1, 8)}
    x, y, z = (relax.Var(k, relax.TensorType(t, "float32")) for k, t in types.items())
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y, z]):
        with builder.dataflow():
            rows = builder.emit(relax.op.concat([y, z], axis=1))
            columns = builder.emit(relax.op.permute_dims(rows, [0, 2, 1]))
            out = builder.emit_output(builder.emit(relax.op.matmul(x, columns)))
        builder.emit_func_output(out)
    library = selfbyoc.build(builder.get())
    assert library.report.counts == {"batch_matmul": 1}
    assert library.unscheduled == {}
    for n in (1, 5, 40):
        rng, shapes = np.random.default_rng(n), ((2, 3, 8), (2, n, 8), (2, 1, 8))
        x, y, z = (rng.standard_normal(shape).astype("float32") for shape in shapes)
        expected = x @ np.concatenate([y, z], axis=1).transpose(0, 2, 1)
        assert first_wrong(library(x, y, z)[0], expected, "float32", 8) is None
