"""Relay: the body of a function in place of a call of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relay

from ...ir.relay.walk import postorder, rebuild

Expr = Any  # relay.Expr: TVM ships no types
# Functions with one of these belong to somebody: a composite, or an external compiler.
_OWNED = ("Composite", "Compiler")


def inlined(function: relay.Function, given: Sequence[Expr]) -> Expr:
    """The body of a function over these arguments."""
    new: dict[Expr, Expr] = dict(zip(function.params, given, strict=True))
    for expr in postorder(function.body, new):
        new[expr] = item(rebuild(expr, new))
    return new[function.body]


def item(expr: Expr) -> Expr:
    """An item of a tuple that is written out; any other expression as it is."""
    if isinstance(expr, relay.TupleGetItem) and isinstance(expr.tuple_value, relay.Tuple):
        return expr.tuple_value.fields[expr.index]
    return expr


def without_primitives(main: relay.Function) -> relay.Function:
    """The function with the ops of the primitive functions that it calls: of a subgraph that
    somebody marked as one function, as of ops that `unfuse` keeps apart.
    """
    new: dict[Expr, Expr] = {}
    for expr in postorder(main.body):
        new[expr] = item(rebuild(expr, new))
        if isinstance(expr, relay.Call) and isinstance(expr.op, relay.Function):
            names = [] if expr.op.attrs is None else list(expr.op.attrs.keys())
            if "Primitive" in names and not any(owner in names for owner in _OWNED):
                new[expr] = inlined(expr.op, new[expr].args)
    body = new[main.body]
    if body.same_as(main.body):
        return main
    return relay.Function(main.params, body, main.ret_type, main.type_params, main.attrs)
