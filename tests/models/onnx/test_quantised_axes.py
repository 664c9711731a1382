"""Quantised convolutions of one axis, and of images with the channels last, as ONNX models have
them: bit for bit what NumPy's integers give.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from levels import F32, bytes_of, level, window_sums
from onnx import TensorProto, helper, numpy_helper

import selfbyoc

N, info = helper.make_node, helper.make_tensor_value_info
TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "float32": TensorProto.FLOAT}
SCALE, OUT, OUT_ZERO = 2.0**-5, 0.37, 9  # of powers of two no float step rounds but the last


@dataclass(frozen=True)
class Layer:
    """A convolution of levels and what is around it; attributes are alike along all axes."""

    x: tuple[int, ...]
    weight: tuple[int, ...]
    attrs: dict[str, int] = field(default_factory=dict)  # of window_sums
    dtype: str = "uint8"
    zero: int = 7
    weights: tuple[str, int] = ("int8", 0)  # their dtype and zero point
    by_channel: bool = True
    relu: bool = False
    residual: bool = False
    bias: bool = True

    def values(self):
        """The constants of a model."""
        rng = np.random.default_rng(3)
        dtype, zero = self.weights
        of = self.weight[:1] if self.by_channel else ()
        scales = np.asarray(2.0 ** -rng.integers(5, 9, of), F32)
        found = {
            "s": np.array(SCALE, F32), "z": np.array(self.zero, self.dtype),
            "os": np.array(OUT, F32), "oz": np.array(OUT_ZERO, self.dtype),
            "w": bytes_of(rng, self.weight, dtype), "ws": scales, "wz": np.full(of, zero, dtype),
        }  # fmt: skip
        if not self.bias:
            return found
        bias = rng.integers(-2000, 2000, self.weight[0]).astype("int32")
        zeros = np.zeros(of, "int32")
        return {**found, "b": bias, "bs": scales * F32(SCALE), "bz": zeros}

    def meaning(self, x):
        """In NumPy's integers, to the last division."""
        v = self.values()
        weight = v["w"].astype("int64") - self.weights[1]
        sums = window_sums(x, weight, self.zero, **self.attrs)
        channels = (-1, *[1] * (x.ndim - 2))
        sums = sums + v["b"].reshape(channels) if self.bias else sums
        floats = sums * (v["ws"].astype("float64") * SCALE).reshape(channels)
        if self.residual:
            floats = floats + (x.astype("int64") - self.zero) * SCALE
        floats = np.maximum(floats, 0) if self.relu else floats
        return level(floats, OUT, OUT_ZERO, self.dtype)


def model(layer, *, last):
    """As a quantiser writes it; `last`: with the channels last outside, as tf2onnx exports it."""
    values, rank = layer.values(), len(layer.x)
    axis = {"axis": 0} if layer.by_channel else {}
    a, nodes = layer.attrs, [N("DequantizeLinear", ["x", "s", "z"], ["xd"])]

    def step(op, *inputs, **attrs):
        nodes.append(N(op, list(inputs), [f"v{len(nodes)}"], **attrs))
        return nodes[-1].output[0]

    inputs = [step("Transpose", "xd", perm=[0, rank - 1, *range(1, rank - 1)]) if last else "xd"]
    inputs += [step("DequantizeLinear", *(n + m for m in ("", "s", "z")), **axis)
               for n in ("w", "b") if n in values]  # fmt: skip
    axes = rank - 2
    y = step(
        "Conv", *inputs, group=a.get("groups", 1), pads=[a.get("padding", 0)] * 2 * axes,
        strides=[a.get("strides", 1)] * axes, dilations=[a.get("dilation", 1)] * axes,
    )  # fmt: skip
    y = step("Transpose", y, perm=[0, *range(2, rank), 1]) if last else y
    y = step("Add", y, "xd") if layer.residual else y
    y = step("Relu", y) if layer.relu else y
    nodes.append(N("QuantizeLinear", [y, "os", "oz"], ["y"]))
    shape = channels_last(np.empty(layer.x)).shape if last else layer.x
    ends = [info("x", TYPES[layer.dtype], shape), info("y", TYPES[layer.dtype], ["_"] * rank)]
    tensors = [numpy_helper.from_array(array, name) for name, array in values.items()]
    graph = helper.make_graph(nodes, "axes", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9)


def channels_last(x):
    return np.moveaxis(x, 1, -1)


ONE_AXIS = {
    "plain": Layer((1, 16, 32), (24, 16, 3)),
    "tail": Layer((2, 5, 37), (7, 5, 4), {"padding": 2}, bias=False),
    "speech": Layer((1, 1, 100), (16, 1, 10), {"strides": 5}, relu=True),
    "dilated": Layer((1, 12, 29), (9, 12, 3), {"padding": 4, "dilation": 4}),
    "depthwise": Layer((2, 24, 31), (24, 1, 7), {"padding": 3, "groups": 24}, relu=True),
    "grouped": Layer((1, 16, 50), (32, 4, 9), {"padding": 4, "groups": 4}),
    "signed": Layer((1, 8, 23), (12, 8, 3), {"padding": 1}, "int8", -3),
    "unsigned weights": Layer((1, 8, 23), (12, 8, 3), weights=("uint8", 128)),
    "another zero": Layer((1, 8, 23), (12, 8, 3), weights=("uint8", 120), by_channel=False),
    "residual": Layer((2, 8, 19), (8, 8, 3), {"padding": 1}, residual=True, relu=True),
    "ones": Layer((1, 1, 1), (1, 1, 1), zero=0),
}
IMAGES = {
    "image": Layer((1, 8, 9, 16), (16, 8, 3, 3), {"padding": 1}),
    "strided": Layer((2, 5, 11, 7), (7, 5, 3, 2), {"strides": 2}, "int8", -3),
    "residual image": Layer((1, 8, 9, 16), (8, 8, 3, 3), {"padding": 1}, residual=True, relu=True),
    "depthwise image": Layer((1, 12, 9, 8), (12, 1, 3, 3), {"padding": 1, "groups": 12}),
}


def checked(layer, mod, *, last=False):
    library = selfbyoc.build(mod)
    assert library.report.counts["conv2d_int8"] == 1
    assert not any(kind == "conv2d" and owner != "conv2d_int8" for _, kind, owner in
                   library.report.ops)  # fmt: skip
    x = bytes_of(np.random.default_rng(5), layer.x, layer.dtype)
    (found,) = library(np.ascontiguousarray(channels_last(x)) if last else x)
    wanted = layer.meaning(x)
    np.testing.assert_array_equal(found, channels_last(wanted) if last else wanted)
    return library.report


@pytest.mark.parametrize("name", ONE_AXIS)
def test_one_axis(name):
    report = checked(ONE_AXIS[name], selfbyoc.from_onnx(model(ONE_AXIS[name], last=False)))
    assert set(report.left) == {"reshape"}  # views


@pytest.mark.parametrize("name", [*IMAGES, "depthwise", "residual", "tail"])
def test_channels_last_between_transposes(name):
    layer = {**ONE_AXIS, **IMAGES}[name]
    checked(layer, selfbyoc.from_onnx(model(layer, last=True)), last=True)


@pytest.mark.parametrize("name", ["residual image", "image"])
def test_what_is_between_transposes_joins_where_layouts_are_optimised(name):
    layer = IMAGES[name]
    mod = selfbyoc.optimize_layouts(selfbyoc.from_onnx(model(layer, last=True)))
    report = checked(layer, mod, last=True)
    assert set(report.left) == {"transpose"}
    assert "now" in report.layouts
    assert {"conv2d", "quantize"} <= set(dict(report.origins))  # ops that moved keep their names


@pytest.mark.parametrize("groups", [1, 12])
@pytest.mark.parametrize("how", ["scaled", "by channel", "biased before"])
def test_dynamic_quantisation_of_one_axis(groups, how):
    """As quantize_dynamic writes a Conv; 0.17's frontend has ConvInteger of two axes only."""
    rng = np.random.default_rng(10)
    weight = bytes_of(rng, (16 if groups == 1 else 12, 12 // groups, 3), "int8")
    units = (1, len(weight), 1)
    values = {
        "w": weight, "wz": np.array(0, "int8"), "s": np.array(SCALE, F32),
        "z": np.array(120, "uint8"), "b": rng.integers(-9000, 9000, units).astype("int32"),
        "ws": rng.uniform(0.01, 0.02, units if how == "by channel" else ()).astype(F32),
    }  # fmt: skip
    attrs = {"pads": [1, 1], "strides": [2], "group": groups}
    nodes = [
        N("ConvInteger", ["x", "w", "z", "wz"], ["i"], **attrs),
        N("Add", ["i", "b"], ["t"]) if how == "biased before" else N("Identity", ["i"], ["t"]),
        N("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        N("Mul", ["s", "ws"], ["both"]), N("Mul", ["f", "both"], ["y"]),
    ]  # fmt: skip
    if how != "biased before":
        del values["b"]
    ends = [info("x", TYPES["uint8"], (2, 12, 31)), info("y", TYPES["float32"], ["_"] * 3)]
    tensors = [numpy_helper.from_array(array, name) for name, array in values.items()]
    graph = helper.make_graph(nodes, "axes", ends[:1], ends[1:], tensors)
    opsets = [helper.make_opsetid("", 13)]
    library = selfbyoc.build(
        selfbyoc.from_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=9))
    )
    assert library.report.counts["conv2d_int8"] == 1
    x = bytes_of(rng, (2, 12, 31), "uint8")
    total = window_sums(x, weight, 120, groups, padding=1, strides=2) + values.get("b", 0)
    wanted = total.astype(F32) * (F32(SCALE) * values["ws"])
    np.testing.assert_allclose(library(x)[0], wanted, rtol=2e-6, atol=2e-6 * np.abs(wanted).max())
