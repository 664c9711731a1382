"""The attention_mask of a decoder of ONNX Runtime GenAI's: what is read here is one of ones.

    seqlens_k = Cast(ReduceSum(attention_mask) - 1)

ONNX Runtime counts the ones, wherever they are: with padding, new keys lie among those of the past.
decoders.py puts them behind all that there are.
"""

from __future__ import annotations

import numpy as np

from ...errors import InputError
from .graph import Graph, nodes, op_name, where

_OP, _PLACE = "com.microsoft.GroupQueryAttention", 5  # of seqlens_k among its inputs


def masks_of_ones(graph: Graph) -> tuple[str, ...]:
    """The inputs that `seqlens_k` is counted of. Raises InputError where it is something else."""
    inputs, found = {value.name for value in graph.graph.input}, set()
    for node in (node for node in nodes(graph.graph) if op_name(node) == _OP):
        counted = node.input[_PLACE]
        mask = _mask_of(counted, graph)
        constant = graph.constant(mask)
        if mask in inputs:
            found.add(mask)
        elif constant is None or (constant != 1).any():
            raise InputError(
                f"{where(node.op_type, node.name)}: expected seqlens_k that counts the ones of an "
                f"input, an attention_mask, as sum(mask) - 1, found {counted!r}"
            )
    return tuple(sorted(found))


def _mask_of(name: str, graph: Graph) -> str:
    """What is summed, less 1; "" for another value."""
    for op in ("Sub", "ReduceSum"):
        made = graph.makers.get(_before_casts(name, graph))
        if made is None or made.op_type != op:
            return ""
        one = graph.constant(made.input[1]) if op == "Sub" else np.ones(1)
        if one is None or (one != 1).any():
            return ""
        name = made.input[0]
    return _before_casts(name, graph)


def _before_casts(name: str, graph: Graph) -> str:
    while (made := graph.makers.get(name)) is not None and made.op_type == "Cast":
        name = made.input[0]
    return name
