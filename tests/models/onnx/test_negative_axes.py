"""Axes counted from the last one, through the ONNX importer: read as the axes that they are."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.ir.generation import ir

onnx = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT = onnx.TensorProto.FLOAT
# 0.17's frontend calls a function of its own that it will take away.
pytestmark = pytest.mark.filterwarnings("ignore:NDArray.asnumpy:DeprecationWarning")


def model(nodes, shape, out, **constants):
    stored = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph(
        [helper.make_node(op_type, ins, outs, **attrs) for op_type, ins, outs, attrs in nodes],
        "axes",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, out)],
        stored,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def softmax(x, axis):
    grown = np.exp(x - x.max(axis=axis, keepdims=True))
    return grown / grown.sum(axis=axis, keepdims=True)


def normalised(x, gamma, beta):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * gamma + beta


ROWS, IMAGES = (2, 3, 8), (2, 3, 8, 4)
GAMMA, BETA = np.linspace(1, 2, 8, dtype="float32"), np.linspace(0, 1, 8, dtype="float32")
# name -> nodes, shape, constants, meaning, composites
CASES = {
    "softmax": (
        [("Softmax", ["x"], ["y"], {"axis": -1})], ROWS, {}, lambda x: softmax(x, 2),
        {"softmax": 1},
    ),
    "softmax over rows": (
        [("Softmax", ["x"], ["y"], {"axis": -2})], ROWS, {}, lambda x: softmax(x, 1), {},
    ),
    "mean": (
        [("ReduceMean", ["x"], ["y"], {"axes": [-1, -2]})], IMAGES, {},
        lambda x: x.mean((2, 3), keepdims=True), {"global_avg_pool2d": 1},
    ),
    "max": (
        [("ReduceMax", ["x"], ["y"], {"axes": [-3], "keepdims": 0})], IMAGES, {},
        lambda x: x.max(1), {},
    ),
    "concat": (
        [("Concat", ["x", "x"], ["y"], {"axis": -3})], IMAGES, {},
        lambda x: np.concatenate([x, x], 1), {},
    ),
    "split": (
        [("Split", ["x", "s"], ["a", "b"], {"axis": -1}), ("Sub", ["a", "b"], ["y"], {})], ROWS,
        {"s": np.array([4, 4])}, lambda x: x[..., :4] - x[..., 4:], {},
    ),
    "squeeze": (
        [("Unsqueeze", ["x", "u"], ["a"], {}), ("Squeeze", ["a", "s"], ["y"], {})], ROWS,
        {"u": np.array([-2]), "s": np.array([-2])}, lambda x: x, {},
    ),
    "layer norm": (
        [
            ("ReduceMean", ["x"], ["m"], {"axes": [-1]}), ("Sub", ["x", "m"], ["c"], {}),
            ("Pow", ["c", "two"], ["s"], {}), ("ReduceMean", ["s"], ["v"], {"axes": [-1]}),
            ("Add", ["v", "e"], ["w"], {}), ("Sqrt", ["w"], ["d"], {}),
            ("Div", ["c", "d"], ["n"], {}), ("Mul", ["n", "g"], ["o"], {}),
            ("Add", ["o", "b"], ["y"], {}),
        ],
        ROWS, {"two": np.float32(2), "e": np.float32(1e-5), "g": GAMMA, "b": BETA},
        lambda x: normalised(x, GAMMA, BETA), {"layer_norm": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_read_as_what_they_are(name):
    nodes, shape, constants, meaning, counts = CASES[name]
    x = np.random.default_rng(4).standard_normal(shape).astype("float32")
    wanted = meaning(x)
    library = selfbyoc.build(selfbyoc.from_onnx(model(nodes, shape, wanted.shape, **constants)))
    assert library.report.counts == counts
    np.testing.assert_allclose(library(x)[0], wanted, rtol=1e-5, atol=1e-5)


def test_a_swap_of_the_last_two_axes_is_the_products():
    nodes = [("Transpose", ["x"], ["t"], {"perm": [0, 2, 1]}), ("MatMul", ["x", "t"], ["y"], {})]
    mod = selfbyoc.from_onnx(model(nodes, ROWS, (2, 3, 3)))
    (product,) = ir.read(mod["main"]).ops
    assert (product.kind, product.attrs["transpose_b"]) == ("batch_matmul", True)


def test_places_from_the_end_along_such_an_axis():
    table = np.arange(36, dtype="float32").reshape(3, 12)
    nodes = [
        ("Cast", ["x"], ["at"], {"to": onnx.TensorProto.INT64}),
        ("Gather", ["table", "at"], ["y"], {"axis": -1}),
    ]
    at = np.array([-1, -12, 5, 0], "float32")
    library = selfbyoc.build(selfbyoc.from_onnx(model(nodes, (4,), (3, 4), table=table)))
    np.testing.assert_array_equal(library(at)[0], table[:, at.astype(int)])
