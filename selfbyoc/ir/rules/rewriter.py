"""What the rules of canonicalisation share: questions to the graph, and how a rule answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...graph import OpCall, OpGraph, Value


@dataclass(frozen=True)
class Declined:
    """Why a rule could not read an op away, or as what it nearly is."""

    op: str
    kind: str  # what would have been there instead
    reason: str


class Rewriter:
    """What rules ask of the graph, and what they could nearly rewrite."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.declined: list[Declined] = []

    def producer(self, value: Value, kind: str | None = None) -> OpCall | None:
        """The op that computes the value, if it is of this kind."""
        call = self.graph.producer(value)
        return call if call is not None and kind in (None, call.kind) else None

    def only_reader(self, value: Value) -> bool:
        """Whether the value has a single reader and is not returned, so that its op can be
        absorbed.
        """
        return len(self.graph.users(value)) == 1 and not self.graph.is_output(value)

    def decline(self, call: OpCall, kind: str, reason: str) -> None:
        """Say why no op of `kind` is read here; the rule then returns None."""
        self.declined.append(Declined(call.name, kind, reason))


# What a rule returns: the ops that stand in for the call, and the ops that it absorbed.
Rewrite = tuple[list[OpCall], list[OpCall]]
Rule = Callable[[Rewriter, OpCall], "Rewrite | None"]


def absorb(call: OpCall, absorbed: list[OpCall], **changes: object) -> OpCall:
    """`call` changed, with the IR nodes of the absorbed ops among its own."""
    sources = tuple(s for other in absorbed for s in other.sources) + call.sources
    return replace(call, sources=sources, **changes)  # type: ignore[arg-type]


def is_scalar(value: Value, wanted: float) -> bool:
    """Whether the value is this constant."""
    return value.scalar is not None and math.isclose(float(value.scalar), wanted, rel_tol=1e-4)


def either_order(call: OpCall) -> list[tuple[Value, Value]]:
    """The two inputs of a commutative op, both ways."""
    return [(call.inputs[0], call.inputs[1]), (call.inputs[1], call.inputs[0])]
