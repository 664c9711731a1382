"""ONNX models written by hand: values by name, seeded weights near unit gain, shapes kept along."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.optional import extra

if TYPE_CHECKING:
    import onnx

OPSET = 17  # the last that the ONNX frontend of TVM 0.17 takes whole
IR_VERSION = 8


class Network:
    """One ONNX graph in the making. Each method adds ops and returns the name of the result."""

    def __init__(self, seed: int = 0, weights: Mapping[str, np.ndarray] | None = None) -> None:
        self._helper = extra("onnx").helper
        self._rng = np.random.default_rng(seed)
        self._given = weights or {}
        self._inputs: list[Any] = []
        self._nodes: list[Any] = []
        self._weights: dict[str, np.ndarray] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    def input(self, name: str, *shape: int, dtype: str = "float32") -> str:
        """A parameter of the model."""
        kind = self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(self._helper.make_tensor_value_info(name, kind, shape))
        self.shapes[name] = shape
        return name

    def weight(self, name: str, *shape: int, fan_in: int = 0, like_one: bool = False) -> str:
        """A constant: the given one of this name, else random.

        `fan_in` terms are summed with it: their sum keeps the size of a term.
        """
        if name in self._given:
            values = self._given[name]
        else:
            scale = math.sqrt(2 / fan_in) if fan_in else 0.1
            values = self._rng.standard_normal(shape) * scale + like_one
        return self.constant(name, np.asarray(values, "float32"))

    def constant(self, name: str, values: np.ndarray) -> str:
        """A constant of these values."""
        self._weights[name] = values
        self.shapes[name] = values.shape
        return name

    def op(self, kind: str, *inputs: str, shape: Sequence[int], **attrs: object) -> str:
        """Any op with one result of this shape."""
        name = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(kind, list(inputs), [name], name, **attrs))
        self.shapes[name] = tuple(shape)
        return name

    def like(self, kind: str, x: str, *others: str, **attrs: object) -> str:
        """An op whose result has the shape of its first input."""
        return self.op(kind, x, *others, shape=self.shapes[x], **attrs)

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The whole as a checked ModelProto."""
        onnx = extra("onnx")
        ends = [
            self._helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, self.shapes[name])
            for name in outputs
        ]
        constants = [onnx.numpy_helper.from_array(a, n) for n, a in self._weights.items()]
        graph = self._helper.make_graph(self._nodes, "workload", self._inputs, ends, constants)
        opsets = [self._helper.make_opsetid("", OPSET)]
        model = self._helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        onnx.checker.check_model(model, full_check=True)
        return model

    def conv(
        self, x: str, channels: int, kernel: int = 1, *, stride: int = 1, groups: int = 1,
        pad: int | None = None, bias: bool = True, act: str = "",
    ) -> str:  # fmt: skip
        """A convolution, padded to keep the size by default; `act` follows it."""
        n, c, h, w = self.shapes[x]
        pad = kernel // 2 if pad is None else pad
        fan_in = c // groups * kernel * kernel
        number = len(self._nodes)
        inputs = [
            x,
            self.weight(f"w{number}", channels, c // groups, kernel, kernel, fan_in=fan_in),
        ]
        if bias:
            inputs.append(self.weight(f"b{number}", channels))
        size = [(e + 2 * pad - kernel) // stride + 1 for e in (h, w)]
        y = self.op(
            "Conv", *inputs, shape=(n, channels, *size), kernel_shape=[kernel] * 2,
            strides=[stride] * 2, pads=[pad] * 4, group=groups,
        )  # fmt: skip
        return self.act(y, act)

    def act(self, x: str, kind: str) -> str:
        """`relu`, `relu6`, `gelu` as exporters to this opset write it, or nothing."""
        if kind == "relu":
            return self.like("Relu", x)
        if kind == "relu6":
            return self.like("Clip", x, self.scalar(0.0), self.scalar(6.0))
        if kind == "gelu":
            inner = self.like("Erf", self.like("Div", x, self.scalar(math.sqrt(2))))
            product = self.like("Mul", x, self.like("Add", inner, self.scalar(1.0)))
            return self.like("Mul", product, self.scalar(0.5))
        return x

    def scalar(self, value: float) -> str:
        """A constant of one float."""
        return self.constant(f"scalar_{value:.6g}", np.asarray(value, "float32"))

    def pool(self, x: str, kind: str, kernel: int, stride: int, pad: int = 0) -> str:
        """`MaxPool` or `AveragePool`."""
        n, c, h, w = self.shapes[x]
        size = [(e + 2 * pad - kernel) // stride + 1 for e in (h, w)]
        attrs = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.op(kind, x, shape=(n, c, *size), **attrs)

    def mean(self, x: str) -> str:
        """Over a picture, flattened to a row for each of the batch."""
        n, c = self.shapes[x][:2]
        return self.op("Flatten", self.op("GlobalAveragePool", x, shape=(n, c, 1, 1)), shape=(n, c))

    def concat(self, *parts: str) -> str:
        """Channels one after the other."""
        n, _, h, w = self.shapes[parts[0]]
        channels = sum(self.shapes[p][1] for p in parts)
        return self.op("Concat", *parts, shape=(n, channels, h, w), axis=1)

    def dense(self, x: str, units: int, name: str = "", bias: bool = True, act: str = "") -> str:
        """Rows times a matrix, as exporters write a linear layer on more than two axes."""
        *rows, terms = self.shapes[x]
        name = name or f"dense{len(self._nodes)}"
        weight = self.weight(f"{name}.weight", terms, units, fan_in=2 * terms)
        y = self.op("MatMul", x, weight, shape=(*rows, units))
        if bias:
            y = self.like("Add", y, self.weight(f"{name}.bias", units))
        return self.act(y, act)

    def layer_norm(self, x: str, name: str = "", epsilon: float = 1e-5) -> str:
        """Over the last axis."""
        name = name or f"norm{len(self._nodes)}"
        width = self.shapes[x][-1]
        gamma = self.weight(f"{name}.weight", width, like_one=True)
        beta = self.weight(f"{name}.bias", width)
        return self.like("LayerNormalization", x, gamma, beta, epsilon=epsilon)

    def transpose(self, x: str, *perm: int) -> str:
        """The axes in another order."""
        shape = [self.shapes[x][axis] for axis in perm]
        return self.op("Transpose", x, shape=shape, perm=list(perm))

    def reshape(self, x: str, *shape: int) -> str:
        """The same elements in another shape."""
        wanted = self.constant("shape_" + "x".join(map(str, shape)), np.asarray(shape, "int64"))
        return self.op("Reshape", x, wanted, shape=shape)

    def attention(self, q: str, k: str, v: str) -> str:
        """softmax(q k^T / sqrt(width)) v over the last two axes."""
        *batch, rows, width = self.shapes[q]
        keys = self.shapes[k][-2]
        axes = [*range(len(batch)), len(batch) + 1, len(batch)]
        scores = self.op("MatMul", q, self.transpose(k, *axes), shape=(*batch, rows, keys))
        scores = self.like("Mul", scores, self.scalar(1 / math.sqrt(width)))
        weights = self.like("Softmax", scores, axis=-1)
        return self.op("MatMul", weights, v, shape=(*batch, rows, self.shapes[v][-1]))
