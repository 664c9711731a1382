"""Rule of canonicalisation: a program of other ops that a user declared to be one op."""

from __future__ import annotations

from ...graph import OpCall, Value
from ...language.match.bound import Bound
from ...language.match.matcher import Matcher
from ...language.nodes import Arg, Node, as_node
from ...ops.kind import OpKind
from ...ops.vocabulary import KINDS
from .rewriter import Rewrite, Rewriter


def declared(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """The ops that `means=` of a declared op describes, and that nobody else reads, are that op."""
    for kind in KINDS.values():
        if kind.means is None or call.kind == kind.name:
            continue
        node, names = _program(kind)
        for bound in Matcher(rw.graph).match(node, call.outputs[0], Bound()):
            inside = [op for op in bound.ops if op is not call]
            if all(_is_inside(rw, op, bound.ops) for op in inside):
                return [_one(kind, call, inside, [bound.args[n] for n in names])], inside
    return None


def _program(kind: OpKind) -> tuple[Node, list[str]]:
    """What an op of the default attributes means, and its arguments in order."""
    assert kind.means is not None
    assert kind.inputs is not None
    names = [f"x{n}" for n in range(kind.inputs)]
    return as_node(kind.means(*map(Arg, names), **kind.attrs)), names


def _is_inside(rw: Rewriter, op: OpCall, group: tuple[OpCall, ...]) -> bool:
    readers = [user for value in op.outputs for user in rw.graph.users(value)]
    returned = any(map(rw.graph.is_output, op.outputs))
    return not returned and all(any(user is other for other in group) for user in readers)


def _one(kind: OpKind, call: OpCall, inside: list[OpCall], args: list[Value]) -> OpCall:
    sources = tuple(source for op in (*inside, call) for source in op.sources)
    return OpCall(kind.name, tuple(args), dict(kind.attrs), call.outputs, sources=sources)
