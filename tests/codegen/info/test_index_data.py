"""Indices as data: what is read under a condition, and what no prover computes with."""

import json

import pytest

from selfbyoc.codegen.info.accesses import _tupled, accesses_of
from selfbyoc.codegen.info.index_data import in_part, part_of, scoped, substituted, variables
from selfbyoc.codegen.info.layout_map import Prover
from selfbyoc.tvm import te, tir

SUM = ("Add", ("Mul", "b/i", 4), 2)


def read_of(element, extent=2, size=8):
    """The index that a block of one axis reads `x` at."""
    x = te.placeholder((size,), name="x")
    y = te.compute((extent,), lambda i: element(x, i), name="y")
    found = accesses_of(te.create_prim_func([x, y]))
    (block,) = found.blocks
    assert _tupled(json.loads(json.dumps(found.to_data()))) == _tupled(found.to_data())
    return [load.index[0] for load in block.loads if load.index is not None]


@pytest.mark.parametrize("condition", [lambda i: i < 1, lambda i: i * 4 + 2 < 6])
def test_an_axis_under_a_condition(condition):
    (index,) = read_of(
        lambda x, i: tir.if_then_else(condition(i), x[i * 4 + 2], tir.const(0, "float32"))
    )
    (axis,) = variables(index)
    assert part_of(axis)[1:] == (0, 1)


def test_the_other_branch_has_the_rest():
    found = read_of(lambda x, i: tir.if_then_else(i < 3, x[i], x[i + 1]), 5)
    assert [part_of(next(variables(index)))[1:] for index in found] == [(0, 3), (3, 5)]


def test_without_a_condition_nothing_is_narrowed():
    (index,) = read_of(lambda x, i: x[i * 4 + 2])
    assert part_of(next(variables(index))) is None


def test_equal_where_the_condition_holds():
    prover = Prover({"b/i": 2})
    assert not prover.equal(SUM, 2)
    assert prover.equal(substituted(SUM, {"b/i": in_part("b/i", 0, 1)}), 2)
    assert not prover.equal(substituted(SUM, {"b/i": in_part("b/i", 1, 2)}), 2)
    assert not prover.equal(SUM, 2), "what holds under a condition was kept"


def test_a_part_and_the_whole_are_one_axis():
    """Either side may be the one that shows the condition."""
    prover = Prover({"b/i": 315})
    inner = ("FloorDiv", ("FloorMod", "b/i", 35), 5)
    outer = ("Sub", ("FloorDiv", in_part("b/i", 280, 315), 5), 56)
    assert prover.equal(inner, outer)
    assert not prover.equal(inner, ("Sub", ("FloorDiv", "b/i", 5), 56))


def test_what_is_opaque_is_equal_to_itself_alone():
    chosen = read_of(lambda x, i: x[tir.Select(i < 1, i, 3 - i)])[0]
    other = read_of(lambda x, i: x[tir.Select(i < 1, i, 2 - i)])[0]
    prover = Prover({name: 2 for name in variables(chosen)})
    assert prover.equal(chosen, chosen)
    assert prover.equal(("FloorDiv", chosen, 2), ("FloorDiv", chosen, 2))
    assert not prover.equal(chosen, other)
    assert not prover.equal(chosen, ("Add", chosen, 1))


def test_opaque_operands_are_scoped_and_replaced():
    (chosen,) = read_of(lambda x, i: x[tir.Select(i < 1, i, 3 - i)])[:1]
    (axis,) = set(variables(chosen))
    assert set(variables(scoped(chosen, "conv2d:1"))) == {f"conv2d:1/{axis}"}
    assert set(variables(substituted(chosen, {axis: "k"}))) == {"k"}


def test_an_index_that_is_data_of_another_buffer():
    """A gather reads the same element while the table of indices stands as it did."""
    x, at = te.placeholder((8,), name="x"), te.placeholder((5,), "int32", name="at")
    y = te.compute((5,), lambda i: x[at[i]], name="y")
    (block,) = accesses_of(te.create_prim_func([x, at, y])).blocks
    found = {load.index for load in block.loads}
    assert any(index[0] == ("=load at", next(variables(index[0]))) for index in found
               if isinstance(index[0], tuple))  # fmt: skip


def test_too_large_to_be_data():
    def element(x, i):
        at = i
        for n in range(80):
            at = tir.Select(i < n, at, n)
        return x[at]

    assert read_of(element) == []
