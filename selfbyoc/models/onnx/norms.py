"""ONNX Runtime's norms of decoders, which are in no version of ONNX: RMS norm, and norms of a sum
that others read, too.

    y           = SimplifiedLayerNormalization(x, gamma)
    y, _, _, s  = SkipSimplifiedLayerNormalization(x, skip, gamma, bias)
    y, _, _, s  = SkipLayerNormalization(x, skip, gamma, beta, bias)

    s = x + skip + bias
    y = s / Sqrt(ReduceMean(s * s) + epsilon) * gamma     of the last axis, in float32
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .graph import Graph, attributes, refuse_results
from .steps import Steps

if TYPE_CHECKING:
    import onnx

_EPSILON = {"SimplifiedLayerNormalization": 1e-5}  # of the others 1e-12
_HAS_LAYER_NORM = 17  # since this opset


def _rms(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    rank = graph.rank(node.input[0])
    axis = attributes(node).get("axis", -1)
    if rank is None and axis != -1:
        return None
    refuse_results(node, graph, 1)
    steps = Steps(graph, node)
    axes = [-1] if axis == -1 or rank is None else list(range(axis % rank, rank))
    return steps.instead(rms_norm(steps, node.input[0], node.input[1], axes))


def _skip_rms(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    refuse_results(node, graph, 1, 2)
    steps = Steps(graph, node)
    x, skip, gamma, bias = [*node.input, ""][:4]
    total = _sum(steps, x, skip, bias)
    return steps.instead(rms_norm(steps, total, gamma, [-1]), *_sums(node, total))


def _skip_layer(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Before opset 17 the frontends' own, which have no sum."""
    if graph.opset < _HAS_LAYER_NORM:
        refuse_results(node, graph, 1, 2, 3)
        return None
    refuse_results(node, graph, 1, 2)
    steps = Steps(graph, node)
    x, skip, gamma, beta, bias = [*node.input, "", ""][:5]
    total = _sum(steps, x, skip, bias)
    affine = [gamma, beta] if beta else [gamma]
    epsilon = attributes(node).get("epsilon", 1e-12)
    found = steps("LayerNormalization", total, *affine, axis=-1, epsilon=epsilon)
    return steps.instead(found, *_sums(node, total))


def _sum(steps: Steps, x: str, skip: str, bias: str) -> str:
    found = steps("Add", x, skip)
    return steps("Add", found, bias) if bias else found


def _sums(node: onnx.NodeProto, total: str) -> Sequence[str]:
    """The results after the first, where the last one is asked for."""
    return ("", "", total) if len(node.output) > 3 else ()


def rms_norm(
    steps: Steps, x: str, gamma: str, axes: Sequence[int], epsilon: float | None = None
) -> str:
    """Halves are computed in float32. `epsilon`: else the node's own."""
    dtype, wide = steps.graph.dtype(gamma), np.dtype(np.float32)
    is_wide = dtype is None or dtype.itemsize >= wide.itemsize
    wide = dtype if dtype is not None and is_wide else wide
    if epsilon is None:
        usual = _EPSILON.get(steps.node.op_type, 1e-12)
        epsilon = attributes(steps.node).get("epsilon", usual)
    x = x if is_wide else steps.cast(x, wide)
    mean = steps.over("ReduceMean", steps("Mul", x, x), axes, keepdims=1)
    normal = steps("Div", x, steps("Sqrt", steps("Add", mean, np.asarray(epsilon, wide))))
    return steps("Mul", normal if is_wide else steps.cast(normal, dtype), gamma)


FORMS = {
    "SimplifiedLayerNormalization": _rms,
    "com.microsoft.SkipLayerNormalization": _skip_layer,
    "com.microsoft.SkipSimplifiedLayerNormalization": _skip_rms,
}
