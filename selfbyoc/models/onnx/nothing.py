"""Ops that say nothing of no elements: where the largest is, and what an image of no pixel pools
to. ONNX Runtime raises; TVM counts -1, or leaves the result as the memory was. What reductions
give is in reductions.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .graph import Graph, attributes

if TYPE_CHECKING:
    import onnx

GLOBAL_POOLS = ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
_IMAGE = 2  # the axis from which on it is one


def of_nothing(node: onnx.NodeProto, graph: Graph) -> str:
    """Which axis leaves such an op nothing, where its result has elements; "" where none does."""
    is_pool = node.op_type in GLOBAL_POOLS
    if not is_pool and node.op_type not in ("ArgMax", "ArgMin"):
        return ""
    dims = graph.dims(node.input[0]) or []
    axis = attributes(node).get("axis", 0) % max(1, len(dims))
    axes = range(_IMAGE, len(dims)) if is_pool else [axis]
    if 0 in [size for n, size in enumerate(dims) if n not in axes]:
        return ""
    empty = [n for n in axes if n < len(dims) and dims[n] == 0]
    text = f"its input {node.input[0]!r} has no elements along axis"
    return f"{text} {empty[0]}; expected 1 or more" if empty else ""
