"""Forms of Resize and Upsample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .checks import IS_RELAY, scales_of, why_not
from .graph import Graph, attributes, remade


def _resized(node: Any, graph: Graph) -> Sequence[Any] | None:
    """0.27's frontend reads all opsets as the last one: there, what is given is a size or scales,
    and pixels are counted from their middle. What is empty is not given.
    """
    if IS_RELAY:
        return None
    if node.op_type == "Resize" and graph.opset > 10:
        inputs = ["" if name and graph.shape(name) == (0,) else name for name in node.input]
        return [remade(node, inputs=inputs)] if inputs != list(node.input) else None
    scales, shape, given = scales_of(node, graph), graph.shape(node.input[0]), attributes(node)
    if scales is None or shape is None or why_not(node, graph):
        return None
    sizes = np.round(np.asarray(shape) * scales.astype(float)).astype(np.int64)
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    how["mode"] = given.get("mode", "nearest")
    return [remade(node, "Resize", [node.input[0], "", "", graph.add(sizes)], how)]


FORMS = {"Resize": _resized, "Upsample": _resized}
