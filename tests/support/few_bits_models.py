"""ONNX models whose weights have few bits in groups, and networks that may get such."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = np.float32
# Rows, units, bits, a group, and whether zero points are given: with tails in every direction.
PRODUCTS = [
    ((1, 256), 96, 4, 32, False), ((2, 5, 160), 33, 4, 32, True), ((70, 128), 64, 8, 64, True),
    ((1, 200), 17, 4, 128, False), ((1, 64), 5, 8, 16, False),
]  # fmt: skip


def packed(levels, bits):
    """[..., levels] -> [..., bytes], the lowest bits first."""
    each = 8 // bits
    parts = levels.reshape(*levels.shape[:-1], -1, each).astype("uint8")
    return np.bitwise_or.reduce(parts << (bits * np.arange(each)).astype("uint8"), axis=-1)


def model_of(nodes, inputs, output, values, opset=21):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "few_bits",
        [value(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()],
        [value("y", TensorProto.FLOAT, output)],
        [v if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(v, n)
         for n, v in values.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def weight_of(rng, units, depth, bits, group, has_zeros):
    """-> levels [units, depth of whole groups], scales and zero points [units, groups], and the
    weight that they are.
    """
    count = -(-depth // group)
    levels = rng.integers(0, 1 << bits, (units, count * group), "uint8")
    scale = rng.uniform(0.01, 0.02, (units, count)).astype(F32)
    zero = rng.integers(0, 1 << bits, (units, count), "uint8")
    zero = zero if has_zeros else np.full_like(zero, 1 << (bits - 1))
    wide = levels.reshape(units, count, group).astype("float64") - zero[..., None]
    weight = (wide * scale[..., None]).reshape(units, -1)[:, :depth]
    return levels, scale, zero, weight


def nbits(x, units, bits, group, has_zeros, bias=None):
    rng, depth = np.random.default_rng(1), x.shape[-1]
    levels, scale, zero, weight = weight_of(rng, units, depth, bits, group, has_zeros)
    blob = packed(levels, bits).reshape(units, scale.shape[1], -1)
    values = {"w": blob, "s": scale.ravel()}
    if has_zeros:
        whole = -(-zero.shape[1] * bits // 8) * 8 // bits
        values["z"] = packed(np.pad(zero, ((0, 0), (0, whole - zero.shape[1]))), bits).ravel()
    names = ["x", "w", "s", "z" if has_zeros else ""]
    if bias is not None:
        values["b"], names = bias, [*names, "", "b"]
    node = helper.make_node(
        "MatMulNBits", names, ["y"], domain="com.microsoft", K=depth, N=units, bits=bits,
        block_size=group,
    )  # fmt: skip
    wanted = x.astype("float64") @ weight.T + (0 if bias is None else bias)
    return model_of([node], {"x": x}, (*x.shape[:-1], units), values), wanted


def network(rng, depth=96, units=80):
    """Two dense layers, the second transposed; a table that is no dense layer's."""
    nodes = [
        helper.make_node("Gather", ["table", "i"], ["e"]),
        helper.make_node("MatMul", ["e", "w1"], ["a"]),
        helper.make_node("Add", ["a", "b1"], ["s"]),
        helper.make_node("Relu", ["s"], ["h"]),
        helper.make_node("Gemm", ["h", "w2", "b2"], ["y"], transB=1),
    ]
    shapes = {
        "table": (50, depth), "w1": (depth, units), "b1": (units,), "w2": (40, units), "b2": (40,),
    }  # fmt: skip
    values = {n: (rng.standard_normal(s) * 0.2).astype(F32) for n, s in shapes.items()}
    return model_of(nodes, {"i": np.zeros(7, "int64")}, (7, 40), values), values
