"""Relax: the chosen matches as FuseOpsByPattern's table, a pattern for all that are alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax
from tvm.relax import dpl

from ...graph import Value
from ...ir.relax import ITEM
from ...language.match.match import Match
from ...tvm import tir, tvm
from ...tvm.types import DFPattern, Expr
from .side_by_side import Tied, beside


class _Bindings:
    """What the variables of main stand for: patterns are over expressions, expressions over
    variables.
    """

    def __init__(self, func: relax.Function) -> None:
        self.value = {b.var: b.value for block in func.body.blocks for b in block.bindings}
        self.name = {value: var.name for var, value in self.value.items()}

    def value_of(self, expr: Expr) -> Expr:
        while isinstance(expr, relax.Var) and expr in self.value:
            expr = self.value[expr]
        return expr


def _pattern(
    expr: Expr, nodes: set[Expr], bindings: _Bindings, done: dict[Expr, DFPattern]
) -> DFPattern:
    """One matched IR node as a TVM pattern; what is not matched is a wildcard."""
    node = bindings.value_of(expr)
    if isinstance(node, tir.IntImm):
        return dpl.wildcard()  # 0.27: equal by value, where a pattern used twice is one object
    if node in done:
        return done[node]
    if node not in nodes:
        done[node] = dpl.wildcard()
        return done[node]

    def of(child: Expr) -> DFPattern:
        return _pattern(child, nodes, bindings, done)

    if isinstance(node, relax.Tuple):  # written into calls, it is another object after a row
        return dpl.is_tuple([of(f) for f in node.fields])
    if isinstance(node, relax.TupleGetItem):
        found = dpl.is_tuple_get_item(of(node.tuple_value), node.index)
    else:
        found = dpl.is_op(node.op.name)(*map(of, node.args))
    done[node] = found
    return found


def _pattern_of(order: Sequence[Expr], bindings: _Bindings) -> DFPattern:
    """The pattern of all these nodes, the root the last."""
    nodes, done = set(order), dict[Any, Any]()
    return [_pattern(node, nodes, bindings, done) for node in order][-1]


def _signature(order: Sequence[Expr], bindings: _Bindings) -> Hashable:
    """Of the pattern of these nodes, the root the last: equal ones are one pattern."""
    numbers: dict[Any, int] = {}

    def number(expr: Expr) -> int:
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


def _is_item(node: Expr) -> bool:
    return isinstance(node, relax.Call) and node.op.name == f"relax.{ITEM}"


def _holder(match: Match, value: Value, bindings: _Bindings) -> Expr:
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


def _root(match: Match, bindings: _Bindings, tied: Tied) -> Expr:
    """The IR node that the match ends in."""
    if match.root.name in tied:
        return tied[match.root.name][1]
    return _holder(match, match.result, bindings)


def _sources(match: Match) -> list[Expr]:
    return [source for call in match.ops for source in call.sources]


def _last(matches: Sequence[Match], bindings: _Bindings) -> dict[str, list[Expr]]:
    """The last nodes of the matches that have several."""
    found: dict[str, list[Any]] = {}
    for match in matches:
        read = {v for call in match.ops for v in call.inputs}
        ends = [v for v in match.outputs if v not in read]
        held = [_holder(match, v, bindings) for v in ends]
        # An op of several results holds those that nobody reads.
        read_ones = [h for h in held if _is_item(h)] if len(match.root.outputs) > 1 else held
        if len(read_ones) > 1:
            found[match.root.name] = read_ones
    return found


def _is_bound_to(names: Collection[str]) -> Callable[[Any], bool]:
    """By name: once a row was marked, calls after it are other objects, and variables may be."""
    return lambda context: context.value_to_bound_var[context.matched_expr].name in names


@dataclass(frozen=True)
class Table:
    """What FuseOpsByPattern is given."""

    mod: tvm.IRModule  # each match ends in one op, and its ops are side by side
    rows: list[tuple[Any, ...]]  # name, pattern, annotations, check
    matches: list[Match]  # as their calls will come in main


def fusion_table(mod: tvm.IRModule, matches: Sequence[Match]) -> Table:
    """The matches as FuseOpsByPattern takes them. It goes through the whole module for each row, so
    all matches that differ in nothing are one, whatever lies between them.
    """
    groups = {match.root.name: _sources(match) for match in matches}
    bindings = _Bindings(mod["main"])
    last = _last(matches, bindings)
    roots = [_root(match, bindings, {}) for match in matches if match.root.name not in last]
    mod, tied = beside(mod, groups, last, roots)
    bindings = _Bindings(mod["main"])
    position = {value: number for number, value in enumerate(bindings.value.values())}
    root_of = {match.root.name: _root(match, bindings, tied) for match in matches}
    matches = sorted(matches, key=lambda match: position[root_of[match.root.name]])
    rows: dict[Hashable, tuple[Any, ...]] = {}
    names: dict[Hashable, set[str]] = {}
    for match in matches:
        name, root = match.composite.full_name, root_of[match.root.name]
        # What an op reads is done before it: no deep recursion.
        order = (*groups[match.root.name], *tied.get(match.root.name, (root,)))
        row = (name, _signature(order, bindings))
        if row not in rows:
            pattern = _pattern_of(order, bindings)
            rows[row] = (name, pattern, {}, _is_bound_to(names.setdefault(row, set())))
        names[row].add(bindings.name[root])
    return Table(mod, list(rows.values()), matches)


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
