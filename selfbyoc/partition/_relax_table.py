"""Relax: the chosen matches as FuseOpsByPattern's table, one pattern for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import relax
from tvm.relax import dpl

from .._tvm import tir, tvm
from ..ir._relax import ITEM
from ..match.match import Match


class _Bindings:
    """What the variables of main stand for: patterns are over expressions, expressions over
    variables.
    """

    def __init__(self, func: relax.Function) -> None:
        self.value = {b.var: b.value for block in func.body.blocks for b in block.bindings}

    def value_of(self, expr: Any) -> Any:
        return self.value.get(expr, expr) if isinstance(expr, relax.Var) else expr


def _pattern(expr: Any, nodes: set[Any], bindings: _Bindings, done: dict[Any, Any]) -> Any:
    """One matched IR node as a TVM pattern; what is not matched is a wildcard."""
    node = bindings.value_of(expr)
    if isinstance(node, tir.IntImm):
        return dpl.wildcard()  # 0.27: equal by value, where a pattern used twice is one object
    if node in done:
        return done[node]
    if node not in nodes:
        done[node] = dpl.wildcard()
        return done[node]

    def of(child: Any) -> Any:
        return _pattern(child, nodes, bindings, done)

    if isinstance(node, relax.Tuple):
        found = dpl.is_tuple([of(f) for f in node.fields])
    elif isinstance(node, relax.TupleGetItem):
        found = dpl.is_tuple_get_item(of(node.tuple_value), node.index)
    else:
        found = dpl.is_op(node.op.name)(*map(of, node.args))
    done[node] = found
    return found


def _is_item(node: Any) -> bool:
    return isinstance(node, relax.Call) and node.op.name == f"relax.{ITEM}"


def _root(match: Match, bindings: _Bindings) -> Any:
    """The IR node that holds the result of the match."""
    value, call = match.result, match.root
    index = next(i for i, v in enumerate(call.outputs) if v is value)
    # The last: before it come those of the ops that this one absorbed.
    return next(
        s
        for s in reversed(call.sources)
        if isinstance(s, relax.Call)
        and (not _is_item(s) or bindings.value_of(s.args[0]).index == index)
    )


def _is_root(root: Any) -> Callable[[Any], bool]:
    return lambda context: bool(context.matched_expr.same_as(root))


def fusion_table(mod: tvm.IRModule, matches: Sequence[Match]) -> list[tuple[Any, ...]]:
    """The matches as FuseOpsByPattern takes them: name, pattern, annotations, check."""
    bindings = _Bindings(mod["main"])
    table: list[tuple[Any, ...]] = []
    for match in reversed(matches):  # from the results back: what is upstream stays as it was
        nodes = {source for call in match.ops for source in call.sources}
        root = _root(match, bindings)
        pattern = _pattern(root, nodes, bindings, {})
        table.append((match.composite.full_name, pattern, {}, _is_root(root)))
    return table
