"""Sizes that cannot be: what a node leaves of an axis is less than nothing. ONNX's shape inference
writes it down, ONNX Runtime opens it, TVM allocates it, or ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from .graph import Graph, attributes, nodes, where

if TYPE_CHECKING:
    import onnx

# Ops that move a window over an image, and which of their inputs says its size, where no attribute
# does.
_WINDOWS = {
    "AveragePool": 0, "Conv": 1, "ConvInteger": 1, "DeformConv": 1, "LpPool": 0, "MaxPool": 0,
    "QLinearConv": 3,
}  # fmt: skip
_IMAGE = 2  # the axis from which on it is one


def below_zero(model: onnx.ModelProto, *, inside: bool = False) -> str:
    """The first node, of an inferred model, that leaves less than nothing of an axis; '' if none.

    inside   look into branches and loops too
    """
    for graph in _graphs(model.graph) if inside else [model.graph]:
        small = _small(graph)
        if not small:
            continue
        known = Graph(SimpleNamespace(graph=graph, opset_import=model.opset_import))
        for node in graph.node:
            if any(name in small for name in node.output) and (found := _of_node(node, known)):
                return found
    return ""


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in nodes(graph):
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs


def _small(graph: onnx.GraphProto) -> set[str]:
    """Values with an axis of 0, or less: of 0 is also what onnx rounds to it."""
    return {
        value.name
        for value in (*graph.value_info, *graph.output)
        for dim in value.type.tensor_type.shape.dim
        if dim.HasField("dim_value") and dim.dim_value < 1
    }


def _of_node(node: onnx.NodeProto, graph: Graph) -> str:
    name = where(node.op_type, node.name or node.output[0])
    for axis, window in _windows(node, graph):
        if window.places < 0:
            return f"{name}: {window.text(f'axis {axis} of {node.input[0]!r}')}"
    for out in node.output:
        for axis, size in enumerate(graph.dims(out) or ()):
            if size is not None and size < 0:
                text = _of_pad(node, graph, axis) if node.op_type == "Pad" else ""
                text = text or f"axis {axis} of its result {out!r} would be of {size}"
                return f"{name}: {text}; expected 0 or more"
    return ""


def _of_pad(node: onnx.NodeProto, graph: Graph, axis: int) -> str:
    """Where its pads, its image and its axes are known."""
    dims, pads = graph.dims(node.input[0]), attributes(node).get("pads")
    if pads is None and len(node.input) > 1 and not any(node.input[3:4]):
        pads = graph.constant(node.input[1])
    if dims is None or pads is None or len(pads) != 2 * len(dims):
        return ""
    extent, before, after = dims[axis], int(pads[axis]), int(pads[axis + len(dims)])
    if extent is None:
        return ""
    what = f"axis {axis} of {node.input[0]!r}, which is {extent}"
    return f"its pads of {before} and {after} leave {extent + before + after} of {what}"


@dataclass(frozen=True)
class _Window:
    """Along one axis: from its first to its last element, in an image of this extent."""

    span: int
    extent: int
    padding: int
    step: int
    is_rounded_up: bool

    @property
    def places(self) -> int:
        """As TVM counts them; ONNX rounds some of less than 0 to 0."""
        room = self.extent + self.padding - self.span
        return 1 + (-(-room // self.step) if self.is_rounded_up else room // self.step)

    def text(self, axis: str) -> str:
        more = f" and {self.padding} of padding" if self.padding else ""
        found = f"its window of {self.span} is larger than {axis}, which is {self.extent}{more}"
        return f"{found}; expected {self.span - self.padding} or more"


def _windows(node: onnx.NodeProto, graph: Graph) -> Iterator[tuple[int, _Window]]:
    """Along each axis that is known, its number before it."""
    if node.op_type not in _WINDOWS:
        return
    given, inputs = attributes(node), [*node.input, "", "", "", ""]
    image = (graph.dims(inputs[0]) or [])[_IMAGE:]
    weight = (graph.dims(inputs[_WINDOWS[node.op_type]]) or [])[_IMAGE:]
    ones, is_up = [1] * len(image), given.get("ceil_mode", 0) == 1
    kernel, apart = given.get("kernel_shape", weight), given.get("dilations", ones)
    steps, pads = given.get("strides", ones), given.get("pads", [0] * (2 * len(ones)))
    is_plain = given.get("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")
    fits = len(kernel) == len(steps) == len(apart) == len(ones) and len(pads) == 2 * len(ones)
    if not is_plain or not fits or min(steps, default=0) < 1:
        return
    for n, (extent, size) in enumerate(zip(image, kernel, strict=True)):
        if extent is not None and size is not None:
            padding, span = pads[n] + pads[n + len(ones)], apart[n] * (size - 1) + 1
            yield n + _IMAGE, _Window(span, extent, padding, steps[n], is_up)
