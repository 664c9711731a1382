"""Rotary embedding as transformers writes it, for ONNX Runtime's ops of decoders.

    y = x * cos + turned(x) * sin
    turned(x) = Concat(-x[half:], x[:half]), or of pairs of neighbours

Of each head the first elements are rotated, two for each column of the tables; the rest stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from .build import Folding
from .graph import Graph, attributes, refuse_attributes, where

if TYPE_CHECKING:
    import onnx

_NEWEST = 1 << 30  # elements: the end of a slice


def _rotary(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Of [batch, length, heads * depth] or [batch, heads, length, depth]."""
    x, places, cos, sin = node.input
    given, rank, columns = attributes(node), graph.rank(x), (graph.dims(cos) or [None])[-1]
    if rank is None or graph.rank(places) is None or columns is None:
        return None
    refuse_attributes(node, {"is_packed_batching": (0,), "scale": (1.0,)})
    if graph.rank(places) != 2:
        text = f"expected position_ids [batch, length], found {graph.rank(places)} axes"
        raise InputError(f"{where(node.op_type, node.name)}: {text}")
    steps, width, is_flat = Folding(graph, node), 2 * columns, rank == 3
    if is_flat:
        x = heads_first(steps, x, *_heads(node, graph, width))
    is_paired = bool(given.get("interleaved", 0))
    tables = [
        steps.unsqueeze(doubled(steps, steps("Gather", t, places), 3, is_paired), 1)
        for t in (cos, sin)
    ]
    depth = width if not given.get("rotary_embedding_dim", 0) else 0
    found = rotated(steps, x, tables, width, depth, is_paired)
    return steps.instead(heads_last(steps, found) if is_flat else found)


def _heads(node: onnx.NodeProto, graph: Graph, width: int) -> tuple[int, int]:
    """How many there are, and how deep each is; -1 for what the other one tells."""
    heads = int(attributes(node).get("num_heads", 0))
    return (heads, -1) if heads else (-1, width)


def heads_first(steps: Folding, x: str, heads: int, depth: int) -> str:
    """[batch, length, heads * depth] -> [batch, heads, length, depth]."""
    return steps.transpose(steps.reshape(x, (0, 0, heads, depth)), (0, 2, 1, 3))


def heads_last(steps: Folding, x: str) -> str:
    """The way back."""
    return steps.reshape(steps.transpose(x, (0, 2, 1, 3)), (0, 0, -1))


def doubled(steps: Folding, table: str, rank: int, is_paired: bool) -> str:
    """[..., half] -> [..., width]: a cosine or sine for each of two elements."""
    if not is_paired:
        return steps.concat([table, table], rank - 1)
    each = steps.unsqueeze(table, rank)
    return steps.reshape(steps.concat([each, each], rank), (0,) * (rank - 1) + (-1,))


def rotated(
    steps: Folding, x: str, tables: Sequence[str], width: int, depth: int, is_paired: bool
) -> str:
    """x [batch, heads, length, depth] by cosines and sines [..., length, width]. A depth that is
    not known is 0.
    """
    rest, (cos, sin) = "", tables
    if depth != width:
        x, rest = steps.cut(x, 3, 0, width), steps.cut(x, 3, width, _NEWEST)
    turned = _turned(steps, x, width, is_paired)
    found = steps("Add", steps("Mul", x, cos), steps("Mul", turned, sin))
    return steps.concat([found, rest], 3) if rest else found


def _turned(steps: Folding, x: str, width: int, is_paired: bool) -> str:
    """(a, b) -> (-b, a), of the two halves or of each pair."""
    if not is_paired:
        first, second = steps.cut(x, 3, 0, width // 2), steps.cut(x, 3, width // 2, width)
        return steps.concat([steps("Neg", second), first], 3)
    pairs = steps.reshape(x, (0, 0, 0, -1, 2))
    first, second = (steps.cut(pairs, 4, n, n + 1) for n in range(2))
    return steps.reshape(steps.concat([steps("Neg", second), first], 4), (0, 0, 0, -1))


def slice_of(steps: Folding, table: str, begin: str, end: str) -> str:
    """Rows of a table from one place to another, both [1]. A call beyond its end is an error."""
    return steps("Slice", table, begin, end, np.asarray([0], np.int64))


FORMS = {"com.microsoft.RotaryEmbedding": _rotary}
