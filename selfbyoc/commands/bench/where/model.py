"""A model's nodes and the values between them, as everybody's steps are placed on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....common.optional import extra
from ....models.onnx.graph import nodes
from ....models.real_inputs import real_inputs
from ..own import copied
from .sums import Sums, sums_of

if TYPE_CHECKING:
    import onnx

# Op -> which of its inputs is the weight of the sums of products.
_PRODUCTS = {
    "Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "MatMul": 1, "Gemm": 1, "MatMulInteger": 1,
    "QLinearMatMul": 3, "ConvTranspose": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Node:
    """`name` is the one that everybody is told, `label` the file's own."""

    name: str
    label: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shape: tuple[int, ...] = ()  # of the first output
    flops: int = 0


@dataclass(frozen=True)
class Values:
    """What a run of the unoptimised model computed in between: name -> sums, and shapes."""

    sums: dict[str, Sums]
    shapes: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Model:
    """The nodes that compute from the inputs, in the order of the file: all others are constants,
    as are shapes, which are known.
    """

    nodes: tuple[Node, ...]
    sums: dict[str, Sums]  # of the inputs and of what these nodes compute

    def producers(self) -> dict[str, Node]:
        """Value -> the node that computes it."""
        return {value: node for node in self.nodes for value in node.outputs}


def named(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose nodes are called n0, n1, ...: peers hand on names, some with commas between."""
    copy = copied(model)
    for number, node in enumerate(copy.graph.node):
        node.name = f"n{number}"
    return copy


def values_of(path: str, inputs: Mapping[str, np.ndarray]) -> Values:
    """Run the model as it is, and look at everything."""
    found = dict(inputs) | dict(every_value(path, inputs))
    numbers = {
        n: a for n, a in found.items() if isinstance(a, np.ndarray) and a.dtype.kind in "fiub"
    }
    sums = {name: sums_of(array) for name, array in numbers.items()}
    return Values(sums, {name: array.shape for name, array in numbers.items()})


def every_value(path: str, inputs: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Each value that a node of a file computes, by ONNX Runtime, which changes nothing of it."""
    onnx, ort = extra("onnx"), extra("onnxruntime")
    model = onnx.load(path)
    known = {value.name for value in model.graph.output}
    for name in (n for node in model.graph.node for n in node.output if n and n not in known):
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    beside = Path(path).with_suffix(".all.onnx")  # in its folder: weights may lie there
    onnx.save(model, str(beside), save_as_external_data=_is_large(model))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3  # it warns of layouts that its own optimiser wrote
    session = ort.InferenceSession(str(beside), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    yield from zip(names, session.run(None, dict(inputs)), strict=True)


def _is_large(model: onnx.ModelProto) -> bool:
    return sum(len(tensor.raw_data) for tensor in model.graph.initializer) > 3 << 29


def read(original: onnx.ModelProto, values: Values) -> Model:
    """The nodes of a model that compute something, with what they computed."""
    weights = {t.name: tuple(t.dims) for t in original.graph.initializer}
    shapes = values.shapes | weights
    known = {value.name for value in real_inputs(original)}
    found = []
    for number, proto in enumerate(original.graph.node):
        reads = _reads(proto)
        if proto.op_type in ("Shape", "Size", "Constant") or not known & set(reads):
            continue
        known.update(filter(None, proto.output))
        shape = shapes.get(proto.output[0], ())
        label = proto.name or proto.output[0]
        found.append(
            Node(
                f"n{number}", label, proto.op_type, reads, tuple(filter(None, proto.output)), shape,
                _flops(proto, shapes),
            )
        )  # fmt: skip
    return Model(tuple(found), {n: s for n, s in values.sums.items() if n in known})


def _reads(proto: onnx.NodeProto) -> tuple[str, ...]:
    """A branch and a loop read what is outside."""
    inside = [
        name
        for attribute in proto.attribute
        for graph in (attribute.g, *attribute.graphs)
        for node in nodes(graph)
        for name in node.input
    ]
    return tuple(filter(None, [*proto.input, *inside]))


def _flops(proto: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Floating-point operations of the direct algorithm; of convolutions and products alone."""
    place = _PRODUCTS.get(proto.op_type)
    if place is None or len(proto.input) <= place:
        return 0
    weight, data = shapes.get(proto.input[place]), shapes.get(proto.input[0])
    out = shapes.get(proto.output[0])
    if weight is None or data is None or out is None:
        return 0
    if proto.op_type == "ConvTranspose":
        return 2 * math.prod(data) * math.prod(weight[1:])
    if "Conv" in proto.op_type:
        return 2 * math.prod(out) * math.prod(weight[1:])
    transposed = any(a.name == "transB" and a.i for a in proto.attribute)
    return 2 * math.prod(out) * (weight[-1] if transposed else weight[max(-2, -len(weight))])
