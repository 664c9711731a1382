"""Relax: the chosen matches as FuseOpsByPattern's table, one pattern for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tvm import relax
from tvm.relax import dpl

from .._tvm import tir, tvm
from ..graph import Value
from ..ir._relax import ITEM
from ..match.match import Match
from ._relax_beside import Tied, beside


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


def _signature(order: Sequence[Any], bindings: _Bindings) -> Hashable:
    """Of the pattern of these nodes, the root the last: equal ones are one pattern."""
    numbers: dict[Any, int] = {}

    def number(expr: Any) -> int:
        node = bindings.value_of(expr)
        return -1 if isinstance(node, tir.IntImm) else numbers.setdefault(node, len(numbers))

    lines: dict[Any, Any] = {}
    for node in order:
        if isinstance(node, relax.Tuple):
            what, read = "tuple", list(node.fields)
        elif isinstance(node, relax.TupleGetItem):
            what, read = f"item {node.index}", [node.tuple_value]
        else:
            what, read = str(node.op.name), list(node.args)
        lines[node] = (what, number(node), *map(number, read))
    return (tuple(lines.values()), number(order[-1]))


def _is_item(node: Any) -> bool:
    return isinstance(node, relax.Call) and node.op.name == f"relax.{ITEM}"


def _holder(match: Match, value: Value, bindings: _Bindings) -> Any:
    """The IR node that holds a result of the match."""
    call = next(c for c in match.ops if any(v is value for v in c.outputs))
    index = next(i for i, v in enumerate(call.outputs) if v is value)
    # The last: before it come those of the ops that this one absorbed.
    return next(
        s
        for s in reversed(call.sources)
        if isinstance(s, relax.Call)
        and (not _is_item(s) or bindings.value_of(s.args[0]).index == index)
    )


def _is_root(roots: Sequence[Any]) -> Callable[[Any], bool]:
    return lambda context: any(context.matched_expr.same_as(root) for root in roots)


def with_one_result(mod: tvm.IRModule, matches: Sequence[Match]) -> tuple[tvm.IRModule, Tied]:
    """The module in which each match ends in one op, and what stands for several last ones."""
    bindings = _Bindings(mod["main"])
    last: dict[str, list[Any]] = {}
    for match in matches:
        read = {id(v) for call in match.ops for v in call.inputs}
        ends = [v for v in match.outputs if id(v) not in read]
        if len(ends) > 1:
            last[match.root.name] = [_holder(match, v, bindings) for v in ends]
    return beside(mod, last)


def in_order(mod: tvm.IRModule, matches: Sequence[Match]) -> list[Match]:
    """The matches as their calls will come in main."""
    done, tied = with_one_result(mod, matches)
    bindings = _Bindings(done["main"])
    position = {value: n for n, value in enumerate(bindings.value.values())}
    return sorted(matches, key=lambda match: position[_root(match, bindings, tied)])


def _root(match: Match, bindings: _Bindings, tied: Tied) -> Any:
    """The IR node that the match ends in."""
    if match.root.name in tied:
        return tied[match.root.name][1]
    return _holder(match, match.result, bindings)


def fusion_table(mod: tvm.IRModule, matches: Sequence[Match]) -> tuple[Any, list[tuple[Any, ...]]]:
    """The module to mark, and the matches as FuseOpsByPattern takes them: name, pattern,
    annotations, check.

    TVM goes through the whole module for each row. So a run of matches that differ in nothing, the
    steps of a recurrent network, is one.
    """
    mod, tied = with_one_result(mod, matches)
    bindings = _Bindings(mod["main"])
    table: list[tuple[Any, ...]] = []
    last: Hashable = None
    roots: list[Any] = []
    for match in reversed(matches):  # from the results back: what is upstream stays as it was
        sources = [source for call in match.ops for source in call.sources]
        nodes = {*sources, *tied.get(match.root.name, ())}
        root = _root(match, bindings, tied)
        order = (*sources, root)  # what an op reads is done before it: no deep recursion
        found = (match.composite.full_name, _signature(order, bindings))
        if found != last:
            done: dict[Any, Any] = {}
            for node in order:
                _pattern(node, nodes, bindings, done)
            last, roots = found, []
            table.append((match.composite.full_name, done[root], {}, _is_root(roots)))
        roots.append(root)
    return mod, table


@relax.expr_functor.mutator
class SaysItsOps(relax.PyExprMutator):
    """`PartitionedFromPattern` beside `Composite`, as Relay's MergeComposite writes it."""

    def visit_function_(self, func: relax.Function) -> relax.Expr:
        done = super().visit_function_(func)
        if not func.attrs or "Composite" not in func.attrs.keys():  # noqa: SIM118 (no Python dict)
            return done
        calls = (b.value for block in func.body.blocks for b in block.bindings)
        ops = [c.op.name for c in calls if isinstance(getattr(c, "op", None), tvm.ir.Op)]
        names = [f"{name.removeprefix('relax.')}_" for name in ops]
        return done.with_attr("PartitionedFromPattern", "".join(names))
