"""Forms of ops that only copy elements: joined, padded, split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .graph import Graph, attributes, remade

if TYPE_CHECKING:
    import onnx


def _with_nothing(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A Concat of what has no element along its axis."""
    axis = attributes(node).get("axis", 1)
    shapes = [graph.shape(name) for name in node.input]
    kept = [
        name
        for name, shape in zip(node.input, shapes, strict=True)
        if shape is None or not -len(shape) <= axis < len(shape) or shape[axis]
    ]
    if not kept or len(kept) == len(node.input):
        return None
    return [remade(node, inputs=kept) if len(kept) > 1 else remade(node, "Identity", kept, {})]


FORMS = {"Concat": _with_nothing}
