"""Ifs whose condition follows from constants and shapes: one branch in their place."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, model, random, value

import selfbyoc
from selfbyoc import from_onnx
from selfbyoc.models.onnx.branches import resolved

runtime = pytest.importorskip("onnxruntime")
BOOL = onnx.TensorProto.BOOL


def branch(nodes, out="o", **constants):
    """A graph without inputs; nodes are (op, inputs, output) and attributes."""
    made = [helper.make_node(op, xs, [y], **attrs) for op, xs, y, attrs in nodes]
    arrays = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    return helper.make_graph(made, out, [], [value(out, FLOAT, None)], arrays)


def chosen(condition, yes, no, out="y"):
    return "If", [condition], out, {"then_branch": yes, "else_branch": no}


def whole(nodes, **constants):
    ends = [value("x", FLOAT, 2, 24)], [value("y", FLOAT, None, None)]
    return model(nodes, *ends, **constants)


def is_right(proto):
    """By ONNX Runtime without its own way of doing this, which crashes."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(proto.SerializeToString(), options)
    x = random(2, 24)
    (wanted,) = session.run(None, {"x": x})
    (found,) = selfbyoc.build(from_onnx(proto))(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    return True


def dense(weight):
    """Of either branch, with the same names within."""
    return branch([("MatMul", ["x", "w"], "o", {})], w=weight)


RATE = [("Equal", ["rate", "sixteen"], "is_16k", {})]
RATES = {"rate": np.array(16000), "sixteen": np.array(16000)}


@pytest.mark.parametrize("rate", [16000, 8000])
def test_a_condition_of_constants(rate):
    """As Silero's files have it, once the rate is a constant."""
    nodes = [*RATE, chosen("is_16k", dense(random(24, 7)), dense(random(24, 9)))]
    proto = whole(nodes, **{**RATES, "rate": np.array(rate)})
    assert [node.op_type for node in resolved(proto).graph.node] == ["Equal", "MatMul", "Identity"]
    assert len(proto.graph.node) == 2, "the caller's model is as it was"
    assert is_right(proto)


def test_a_condition_of_shapes():
    """As PyTorch's squeeze has it: is this axis 1?"""
    nodes = [
        ("Shape", ["x"], "shape", {}), ("Gather", ["shape", "zero"], "rows", {}),
        ("Equal", ["rows", "one"], "is_one", {}),
        chosen("is_one", branch([("Transpose", ["x"], "o", {})]), dense(random(24, 7))),
    ]  # fmt: skip
    assert is_right(whole(nodes, zero=np.array(0), one=np.array(1)))


def test_an_if_in_an_if():
    """ONNX Runtime 1.32 takes the inner one for known, too, and ends the process."""
    inner = chosen("is_16k", dense(random(24, 7)), dense(random(24, 9)), "o")
    nodes = [*RATE, chosen("is_16k", branch([inner]), dense(random(24, 5)))]
    assert is_right(whole(nodes, **RATES))


def test_an_if_of_what_an_inner_value_is():
    inner = [
        ("Relu", ["x"], "r", {}), ("Shape", ["r"], "s", {}), ("Gather", ["s", "zero"], "n", {}),
        ("Equal", ["n", "two"], "is_two", {}),
        chosen("is_two", branch([("Neg", ["r"], "o", {})]), branch([("Abs", ["r"], "o", {})]), "o"),
    ]  # fmt: skip
    nodes = [*RATE, chosen("is_16k", branch(inner), dense(random(24, 5)))]
    assert is_right(whole(nodes, zero=np.array(0), two=np.array(2), **RATES))


def test_a_branch_that_hands_on_what_is_outside():
    nodes = [
        *RATE, ("Relu", ["x"], "r", {}),
        chosen("is_16k", branch([("Identity", ["r"], "o", {})]), dense(random(24, 24))),
    ]  # fmt: skip
    assert is_right(whole(nodes, **RATES))


def test_what_is_not_known_stays():
    """An input, and what is as large as a weight."""
    nodes = [chosen("c", dense(random(24, 7)), dense(random(24, 9)))]
    ends = [value("x", FLOAT, 2, 24), value("c", BOOL)], [value("y", FLOAT, None, None)]
    proto = model(nodes, *ends)
    assert resolved(proto) is proto
    large = [("ReduceSum", ["w"], "s", {"keepdims": 0}), ("Greater", ["s", "zero"], "c", {})]
    proto = whole([*large, *nodes], w=random(70, 70), zero=np.float32(0))
    assert resolved(proto) is proto


def test_a_condition_that_depends_on_an_open_size_is_not_known():
    nodes = [
        ("Size", ["x"], "n", {}), ("Equal", ["n", "two"], "c", {}),
        chosen("c", dense(random(24, 7)), dense(random(24, 9))),
    ]  # fmt: skip
    ends = [value("x", FLOAT, "n", 24)], [value("y", FLOAT, None, None)]
    proto = model(nodes, *ends, two=np.array(2))
    assert resolved(proto) is proto
