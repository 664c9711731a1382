"""Scales that mean nothing, of 0 or below, infinite or NaN; and axes that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .graph import Graph, attributes

if TYPE_CHECKING:
    import onnx

# Inputs that are scales, by their places.
_SCALES = {
    "DequantizeLinear": (1,), "QLinearConv": (1, 4, 6), "QLinearMatMul": (1, 4, 6),
    "QuantizeLinear": (1,),
}  # fmt: skip


def of_scales(node: onnx.NodeProto, graph: Graph) -> str:
    """What is wrong with the constant scales of an op; "" for nothing, or for none."""
    for place in _SCALES.get(node.op_type, ()):
        name = node.input[place]
        values = graph.constant(name)
        if values is None:
            continue
        wrong = values[~(np.isfinite(values) & (values > 0))]
        if wrong.size:
            return f"its scale {name!r} holds {wrong.flat[0]}; expected finite numbers above 0"
    return _axis(node, graph) if node.op_type in ("DequantizeLinear", "QuantizeLinear") else ""


def _axis(node: onnx.NodeProto, graph: Graph) -> str:
    axis, rank = attributes(node).get("axis", 1), graph.rank(node.input[0])
    scale = graph.shape(node.input[1])
    if rank is None or not scale or scale == (1,) or -rank <= axis < rank:
        return ""
    return f"its scales lie along axis {axis} of {rank}"
