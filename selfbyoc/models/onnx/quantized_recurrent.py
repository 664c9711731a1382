"""ONNX Runtime's DynamicQuantizeLSTM: weights of 8 bits, [directions, inputs, 4 * units]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from .build import Folding
from .graph import Graph
from .recurrent import layer_of

if TYPE_CHECKING:
    import onnx


def _form(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    """ONNX Runtime's LSTM of weights of 8 bits, of what is left of inputs and states once rounded
    to 8 bits. Raises InputError for weights that are computed.
    """
    nodes, layer = Folding(graph, node), layer_of(node, graph)
    inputs = nodes("DequantizeLinear", *nodes.results(3, "DynamicQuantizeLinear", node.input[0]))
    levels, scale = _levels(node, graph, 1)
    rows = levels.reshape(-1, levels.shape[-1]).T
    scales = np.broadcast_to(scale, levels.shape[:2]).reshape(-1)
    of_inputs = _dequantized(nodes, rows, scales, 1)
    levels, scale = _levels(node, graph, 2)
    if scale.shape[1] == 1:
        of_states = _dequantized(nodes, levels, scale[:, 0], 0)
    else:
        of_states = nodes.constant(levels.astype("float32") * scale[:, :, None])
    attrs, names = {**layer.attrs, "quantized_state": True}, [inputs, "", of_states]
    made = replace(layer, names=[*names, *layer.names[3:]], attrs=attrs, of_inputs=of_inputs)
    return made.write(nodes)


def _dequantized(nodes: Folding, levels: np.ndarray, scale: np.ndarray, axis: int) -> str:
    """Levels that count from 0, with a scale each along an axis: of bytes, as far as they are."""
    if levels.min() >= -128 and levels.max() <= 127:
        return nodes("DequantizeLinear", levels.astype("int8"), scale, axis=axis)
    along = [-1 if n == axis else 1 for n in range(levels.ndim)]
    return nodes.constant(levels.astype("float32") * scale.reshape(along))


def _levels(node: onnx.NodeProto, graph: Graph, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Of a weight [directions, inputs, 4 * units] of 8 bits the levels, counted from the zero
    point, as [directions, 4 * units, inputs], and the scales, [directions, 4 * units or 1].
    """
    scale, zero = (6 + 2 * place, 7 + 2 * place)
    known = [graph.constant(node.input[n]) for n in (place, scale, zero)]
    if any(array is None for array in known):
        text = f"{node.input[place]!r}, its scale and its zero point have to be constants"
        raise InputError(f"{node.op_type} {node.name!r}: {text}")
    weight, factor, point = (array for array in known if array is not None)
    sides = len(weight)  # of each direction one, or one for each gate and unit
    whole = weight.astype("int32") - point.astype("int32").reshape(sides, 1, -1)
    return whole.transpose(0, 2, 1), factor.astype("float32").reshape(sides, -1)


FORMS = {"com.microsoft.DynamicQuantizeLSTM": _form}
