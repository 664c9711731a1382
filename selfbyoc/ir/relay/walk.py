"""Relay: an expression's inputs, all below it, and the expression over new ones."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

from tvm import relay

from ...errors import InputError
from ...tvm.types import Expr


def children(expr: Expr) -> list[Expr]:
    if isinstance(expr, relay.Call):
        return list(expr.args)
    if isinstance(expr, relay.Tuple):
        return list(expr.fields)
    if isinstance(expr, relay.TupleGetItem):
        return [expr.tuple_value]
    if isinstance(expr, relay.If):
        return [expr.cond, expr.true_branch, expr.false_branch]
    if isinstance(expr, relay.Let):
        raise InputError(
            "the Relay module holds `let`; run relay.transform.ToGraphNormalForm() first"
        )
    return []


def postorder(
    root: Expr, known: Container[Expr] = (), inputs: Callable[[Expr], list[Expr]] | None = None
) -> Iterator[Expr]:
    """Every expression under the root once, inputs first, without recursion: graphs outgrow
    Python's stack.
    """
    inputs = inputs or children
    seen: set[Expr] = set()
    stack = [(root, False)]
    while stack:
        expr, ready = stack.pop()
        if expr in seen or expr in known:
            continue
        if ready:
            seen.add(expr)
            yield expr
            continue
        stack.append((expr, True))
        stack.extend((child, False) for child in reversed(inputs(expr)))


def rebuild(expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
    """One expression over new inputs; itself where nothing changed."""
    if all(new[child].same_as(child) for child in children(expr)):
        return expr
    if isinstance(expr, relay.Tuple):
        return relay.Tuple([new[f] for f in expr.fields], expr.span)
    if isinstance(expr, relay.TupleGetItem):
        return relay.TupleGetItem(new[expr.tuple_value], expr.index, expr.span)
    if isinstance(expr, relay.Call):
        return relay.Call(
            expr.op, [new[a] for a in expr.args], expr.attrs, expr.type_args, expr.span
        )
    if isinstance(expr, relay.If):
        return relay.If(*(new[child] for child in children(expr)), expr.span)
    raise InputError(f"a Relay {type(expr).__name__} after a composite cannot be rewritten")
