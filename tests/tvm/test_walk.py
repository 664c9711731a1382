"""A walk over the nodes of some classes: those of the walk over all, in its order."""

import pytest

from selfbyoc.tvm import te, tir, walk

KINDS = (
    ("Call",), ("BufferLoad", "TensorLoad"), ("BufferStore",), ("For",), ("Block", "SBlock"),
    ("FloorDiv", "FloorMod"), ("Var", "SizeVar"), ("IntImm", "FloatImm"), ("Min", "For", "NoSuch"),
)  # fmt: skip


def _body():
    x = te.placeholder((6, 35), "float32", "x")
    k = te.reduce_axis((0, 5), "k")

    def at(i, j):
        place = tir.min(j * 5 + k, 30)  # one node in two places
        return te.sum(tir.exp(x[i, place]) * x[5 - i, place] + 2.0, axis=k)

    sums = te.compute((6, 7), at, "sums")
    flat = te.compute((42,), lambda n: sums[n // 7, n % 7] * 0.5, "flat")
    return te.create_prim_func([x, flat]).body


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_it_is_the_walk_over_all(kinds):
    body, every, found = _body(), [], []
    walk(body, lambda n: every.append(n) if type(n).__name__ in kinds else None)
    walk(body, found.append, *kinds)
    assert found
    assert len(every) == len(found)
    assert all(a.same_as(b) for a, b in zip(every, found, strict=True))


def test_an_expression_is_walked_as_well():
    x, y = (tir.Var(name, "int32") for name in "xy")
    twice = x * y
    found = []
    walk(tir.min(twice, twice + 3), found.append, "Mul", "Var")
    assert [type(n).__name__ for n in found[:3]] == ["Var", "Var", "Mul"]
    assert {type(n).__name__ for n in found} == {"Var", "Mul"}


def test_a_class_that_this_tvm_lacks_has_no_nodes():
    found = []
    walk(_body(), found.append, "NoSuch")
    assert found == []
