"""What ops cost by their shapes, and what `explain` says of those outside of kernels."""

import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.explain.grouping import left
from selfbyoc.graph import OpCall, Value
from selfbyoc.ir.emit import emit
from selfbyoc.ops.cost import cost_of

TABLE, ROWS = Value((1000, 64), "float32"), Value((5,), "int64")
IMAGE = Value((1, 6, 8, 8), "float32")


def call(kind, inputs, output, **attrs):
    return OpCall(kind, tuple(inputs), attrs, (Value(output, "float32"),))


CASES = {
    "elementwise": (call("relu", [IMAGE], (1, 6, 8, 8)), 2 * 4 * 384, 384),
    "a copy computes nothing": (call("reshape", [IMAGE], (6, 64)), 2 * 4 * 384, 0),
    "of a table what is taken": (call("take", [TABLE, ROWS], (5, 64)), 2 * 4 * 320 + 40, 0),
    "a reduction": (call("sum", [IMAGE], (1, 6)), 4 * (384 + 6), 384),
    "a convolution": (
        call("conv2d", [IMAGE, Value((4, 3, 3, 3), "float32")], (1, 4, 6, 6), kernel_layout="OIHW"),
        4 * (384 + 108 + 144),
        2 * 144 * 27,
    ),
    "half the bytes": (call("cast", [Value((10,), "float16")], (10,)), 60, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_cost(name):
    given, moved, flops = CASES[name]
    assert cost_of(given) == (moved, flops)


def test_what_cannot_be_told_is_none():
    assert cost_of(call("relu", [Value((None, 3), "float32")], (1, 3))) is None
    assert cost_of(call("conv2d", [IMAGE], (1, 4, 6, 6))) is None  # no kernel
    assert cost_of(call("max_pool2d", [IMAGE], (1, 6, 4, 4))) is None  # no pool_size


def model(x, w):
    return op.log(op.multiply(op.relu(op.dense(x, w)), 2.0))


def test_the_rest_of_a_model_has_its_cost():
    found = selfbyoc.explain(emit(model, {"x": (7, 40), "w": (24, 40)}), target="llvm")
    (row,) = [row for row in left(found.report) if row.kind == "log"]
    assert (row.count, row.bytes, row.flops) == (1, 2 * 4 * 7 * 24, 7 * 24)
    costs = {name: moved for name, moved, _ in found.report.costs}
    assert set(costs) == {name for name, _, _ in found.report.ops}
    assert row.share == pytest.approx(row.bytes / sum(costs.values()))
    assert "1 x log, 0.00134 MB" in str(found)
    assert selfbyoc.explain(emit(model, {"x": (7, 40), "w": (24, 40)}), target="llvm") == found
    assert selfbyoc.Explanation.from_json(found.to_json()) == found
