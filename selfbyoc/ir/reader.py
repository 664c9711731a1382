"""What the readers of both generations keep while they walk over a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..graph import OpCall, OpGraph, Value, name_ops
from ..tvm.types import Attr, Expr


@dataclass(frozen=True)
class Written:
    """A function as it was written: its graph, and by IR node the values and the op of it.

    A node is an expression of Relay, and what a binding of Relax binds.
    """

    graph: OpGraph
    values: Mapping[Any, tuple[Value, ...]]
    ops: Mapping[Expr, OpCall]


class Reader:
    """The values by IR node, the ops so far, and which op a tuple came from.

    `inlines` says whether calls of functions inside the function are read through, or opaque.
    """

    def __init__(self, inlines: bool) -> None:
        self.inlines = inlines
        self.values: dict[Any, tuple[Value, ...]] = {}
        self.ops: list[OpCall] = []
        self.owner: dict[Any, int] = {}  # node of tuple type -> position of the op that computes it
        self.items: dict[
            int, list[Any]
        ] = {}  # position of an op -> the nodes that take its outputs

    def add(
        self,
        node: Expr,
        kind: str,
        inputs: Sequence[Value],
        attrs: dict[str, Attr],
        outputs: tuple[Value, ...],
        sources: Sequence[Expr],
    ) -> tuple[Value, ...]:
        """One more op, bound to `node`; -> its outputs."""
        self.owner[node] = len(self.ops)
        self.ops.append(OpCall(kind, tuple(inputs), attrs, outputs, sources=tuple(sources)))
        return outputs

    def item(self, node: Expr, of: Expr, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """One output taken out of a tuple: the node belongs to the op that made the tuple."""
        if of in self.owner:
            self.items.setdefault(self.owner[of], []).append(node)
        if [value.dtype for value in values] == ["opaque"]:
            return values  # a tuple of tuples: nothing is known of its items
        return (values[node.index],)

    def finish(self, inputs: tuple[Value, ...], outputs: tuple[Value, ...]) -> OpGraph:
        """The graph of all that was read."""
        ops = (
            replace(call, sources=(*call.sources, *self.items.get(position, ())))
            for position, call in enumerate(self.ops)
        )
        return OpGraph(inputs, name_ops(ops), outputs)

    def written(self, graph: OpGraph) -> Written:
        """What `finish` made, with what is known of each node."""
        return Written(graph, self.values, {n: graph.ops[at] for n, at in self.owner.items()})
