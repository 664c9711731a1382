"""Ops of levels in one node, ONNX's and ONNX Runtime's, against ONNX Runtime."""

import numpy as np
import pytest
from levels import F32, bytes_of
from onnx import TensorProto, helper, numpy_helper

import selfbyoc

ort = pytest.importorskip("onnxruntime")


def one_node(op, inputs, values, out, rank, version=17, **attrs):
    """A model of one op; inputs {name: array} are given at run time, values are constants."""
    names = list(attrs.pop("order"))
    domain = "" if op in ("QLinearConv", "QLinearMatMul") else "com.microsoft"
    node = helper.make_node(op, names, ["y"], domain=domain, **attrs)
    graph = helper.make_graph(
        [node],
        "levels",
        [helper.make_tensor_value_info(n, TYPES[a.dtype], a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info("y", out, [f"y{n}" for n in range(rank)])],
        [numpy_helper.from_array(a, n) for n, a in values.items()],
    )
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


TYPES = {
    np.dtype("uint8"): TensorProto.UINT8, np.dtype("int8"): TensorProto.INT8,
    np.dtype("float32"): TensorProto.FLOAT,
}  # fmt: skip


def scale(value):
    return np.array(value, F32)


def zero(value, dtype="uint8"):
    return np.array(value, dtype)


RNG = np.random.default_rng(0)
IMAGE, OTHER = (bytes_of(RNG, (1, 6, 9, 8), "uint8") for _ in range(2))
ROWS = bytes_of(RNG, (7, 34), "uint8")
ABC = {"as": scale(0.0311), "az": zero(120), "bs": scale(0.0523), "bz": zero(7)}
Y = {"ys": scale(0.0617), "yz": zero(101)}
WEIGHTS = {
    "w": RNG.integers(-64, 64, (10, 6, 3, 3)).astype("int8"), "wz": np.zeros(10, "int8"),
    "ws": RNG.uniform(0.001, 0.01, 10).astype(F32),
    "bias": RNG.integers(-999, 999, 10).astype("int32"),
}  # fmt: skip
MATRIX = {
    "w": RNG.integers(-64, 64, (34, 12)).astype("int8"), "wz": zero(0, "int8"),
    "ws": scale(0.004), "bias": RNG.integers(-999, 999, 12).astype("int32"),
}  # fmt: skip
BY_COLUMN = {"ws": RNG.uniform(0.001, 0.01, 12).astype(F32), "wz": np.zeros(12, "int8")}
TO_ONE = {"ys": scale(2**-8), "yz": zero(0)}
ONE = {"order": ["a", "as", "az", "ys", "yz"]}
TWO = {"order": ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]}
BY_ONE_FACTOR = (
    "conv",
    "gemm",
    "gemm-by-column",
    "matmul",
    "matmul-by-column",
)  # whose definition is ONNX Runtime's, too
LINEAR = {
    "conv": ("QLinearConv", {"a": IMAGE}, {**ABC, **Y, **WEIGHTS}, "conv2d_int8", {
        "order": ["a", "as", "az", "w", "ws", "wz", "ys", "yz", "bias"], "pads": [1] * 4}),
    "matmul": ("QLinearMatMul", {"a": ROWS}, {**ABC, **Y, **MATRIX}, "dense_int8", {
        "order": ["a", "as", "az", "w", "ws", "wz", "ys", "yz"]}),
    "gemm": ("QGemm", {"a": ROWS}, {**ABC, **Y, **MATRIX}, "dense_int8", {
        "order": ["a", "as", "az", "w", "ws", "wz", "bias", "ys", "yz"], "alpha": 1.0}),
    "matmul-by-column": ("QLinearMatMul", {"a": ROWS}, {**ABC, **Y, **MATRIX, **BY_COLUMN},
        "dense_int8", {"order": ["a", "as", "az", "w", "ws", "wz", "ys", "yz"]}),
    "gemm-by-column": ("QGemm", {"a": ROWS}, {**ABC, **Y, **MATRIX, **BY_COLUMN}, "dense_int8", {
        "order": ["a", "as", "az", "w", "ws", "wz", "bias", "ys", "yz"], "alpha": 1.0}),
    "add": ("QLinearAdd", {"a": IMAGE, "b": OTHER}, {**ABC, **Y}, "", TWO),
    "mul": ("QLinearMul", {"a": IMAGE, "b": OTHER}, {**ABC, **Y}, "", TWO),
    "sigmoid": ("QLinearSigmoid", {"a": IMAGE}, {**ABC, **TO_ONE}, "", ONE),
    "leaky": ("QLinearLeakyRelu", {"a": IMAGE}, {**ABC, **Y}, "", {**ONE, "alpha": 0.2}),
    "mean": ("QLinearGlobalAveragePool", {"a": IMAGE}, {**ABC, **Y}, "", ONE),
    "pool": ("QLinearAveragePool", {"a": IMAGE}, {**ABC, **Y}, "", {
        **ONE, "kernel_shape": [2, 2], "strides": [2, 2]}),
    "softmax": ("QLinearSoftmax", {"a": ROWS}, {**ABC, **TO_ONE}, "softmax", {
        **ONE, "axis": -1, "opset": 13}),
    "concat": ("QLinearConcat", {"a": IMAGE, "b": OTHER}, {**ABC, **Y}, "", {
        "order": ["ys", "yz", "a", "as", "az", "b", "bs", "bz"], "axis": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(LINEAR))
def test_levels_to_levels(name):
    op, inputs, values, composite, attrs = LINEAR[name]
    values = {n: a for n, a in values.items() if n in attrs["order"]}
    model = one_node(op, inputs, values, TensorProto.UINT8, inputs["a"].ndim, **attrs)
    session = ort.InferenceSession(model.SerializeToString())
    (wanted,) = session.run(None, inputs)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    (found,) = library(*inputs.values())
    if composite:
        assert library.report.counts == {composite: 1}
    off = np.abs(found.astype(int) - wanted.astype(int))
    if name in BY_ONE_FACTOR:
        assert off.max() == 0
    # ONNX Runtime multiplies by one factor, and a sigmoid by a table: near halves one level.
    assert off.max() <= 1
    assert (off > 0).mean() < 0.02


def test_weights_by_channel_before_scales_had_axes():
    """As quantisers write QLinearConv into a model of opset 11: its zero points are all 0."""
    op, inputs, values, composite, attrs = LINEAR["conv"]
    values = {n: a for n, a in values.items() if n in attrs["order"]}
    model = one_node(op, inputs, values, TensorProto.UINT8, 4, version=11, **attrs)
    (wanted,) = ort.InferenceSession(model.SerializeToString()).run(None, inputs)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {composite: 1}
    np.testing.assert_array_equal(library(IMAGE)[0], wanted)


def test_levels_to_floats():
    names = ["a", "w", "as", "ws", "az", "wz", "bias"]
    values = {**ABC, **MATRIX, "bias": RNG.standard_normal(12).astype(F32)}
    values = {n: a for n, a in values.items() if n in names}
    model = one_node("MatMulIntegerToFloat", {"a": ROWS}, values, TensorProto.FLOAT, 2, order=names)
    (wanted,) = ort.InferenceSession(model.SerializeToString()).run(None, {"a": ROWS})
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense_int8": 1}
    np.testing.assert_allclose(library(ROWS)[0], wanted, rtol=1e-5, atol=1e-5)


def test_floats_by_levels():
    names = ["x", "w", "ws", "wz", "bias"]
    values = {n: a for n, a in {**MATRIX, "bias": np.ones(12, F32)}.items() if n in names}
    x = RNG.standard_normal((2, 5, 34)).astype(F32)
    model = one_node("DynamicQuantizeMatMul", {"x": x}, values, TensorProto.FLOAT, 3, order=names)
    (wanted,) = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense_int8": 1}
    np.testing.assert_allclose(library(x)[0], wanted, rtol=1e-5, atol=1e-5)
