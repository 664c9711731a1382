"""Relay: one match as the composite function that MergeComposite makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import relay
from tvm.relay import dataflow_pattern as dfp

from ...graph import Value
from ...ir.relay.walk import children, postorder, rebuild
from ...language.match.match import Match
from ...tvm import tvm
from ...tvm.types import DFPattern, Expr

ROOT = "tefuse.root"  # on a composite function: the root op of its match


class Group:
    """The IR of one match: what goes in, and the composite function that MergeComposite makes of
    it.
    """

    def __init__(self, match: Match) -> None:
        self.match = match
        self.nodes = {source for call in match.ops for source in call.sources}
        self.outputs = _read_ones([_expr_of(match, value) for value in match.outputs])
        self.root = self.outputs[0] if len(self.outputs) == 1 else relay.Tuple(self.outputs)
        self.nodes.add(self.root)
        inside = postorder(self.root, inputs=lambda e: children(e) if e in self.nodes else [])
        self.leaves = [expr for expr in inside if expr not in self.nodes]

    def composite(self) -> relay.Function:
        """The group alone, as the function that carries `Composite` and `PartitionedFromPattern`.

        MergeComposite runs on the group, not on the whole of main: there it would form its groups
        before it asks a check (a candidate that we refused would block its neighbours), would know
        one root only, and would take 0.14 s a pattern for 230 ops (TVM 0.17).
        """
        params = [relay.Var(f"arg{i}", leaf.checked_type) for i, leaf in enumerate(self.leaves)]
        new = dict(zip(self.leaves, params, strict=True))
        for expr in postorder(self.root, new):
            new[expr] = rebuild(expr, new)
        patterns: dict[Any, Any] = {leaf: dfp.wildcard() for leaf in self.leaves}
        for expr in postorder(self.root, patterns):
            patterns[expr] = _pattern(expr, patterns)
        alone = tvm.IRModule.from_expr(relay.Function(params, new[self.root]))
        table = [(self.match.composite.full_name, patterns[self.root])]
        merged = relay.transform.MergeComposite(table)(relay.transform.InferType()(alone))
        call = merged["main"].body
        assert isinstance(call.op, relay.Function), f"MergeComposite did not merge {self.match.ops}"
        # The composite's parameters come in the order in which MergeComposite met them.
        position = {param: i for i, param in enumerate(merged["main"].params)}
        order = [position[arg] for arg in call.args]
        self.leaves = [self.leaves[i] for i in order]
        return call.op.with_attr(ROOT, self.match.root.name)


def _read_ones(outputs: list[Expr]) -> list[Expr]:
    """Without results of an op of several that nobody reads: the op itself holds them."""
    read = [o for o in outputs if not isinstance(o.checked_type, relay.TupleType)]
    return read or outputs


def _pattern(expr: Expr, done: Mapping[Expr, DFPattern]) -> DFPattern:
    """One matched IR node as a TVM pattern over the patterns of its inputs."""
    if isinstance(expr, relay.Tuple):
        return dfp.is_tuple([done[f] for f in expr.fields])
    if isinstance(expr, relay.TupleGetItem):
        return dfp.is_tuple_get_item(done[expr.tuple_value], expr.index)
    return dfp.is_op(expr.op.name)(*(done[a] for a in expr.args))


def _expr_of(match: Match, value: Value) -> Expr:
    """The IR expression that holds an output of the match."""
    call = next(c for c in match.ops if any(v is value for v in c.outputs))
    index = next(i for i, v in enumerate(call.outputs) if v is value)
    # The last: before it come those of the ops that this one absorbed.
    return next(
        s
        for s in reversed(call.sources)
        if isinstance(s, relay.Call) or (isinstance(s, relay.TupleGetItem) and s.index == index)
    )
