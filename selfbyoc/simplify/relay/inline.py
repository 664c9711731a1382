"""Relay: the body of a function in place of a call of it."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relay

from ...ir.relay.rewrite import with_main
from ...ir.relay.walk import postorder, rebuild
from ...tvm import tvm
from ...tvm.types import Expr

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


def without_primitives(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with the ops of the primitive functions that main calls: of a subgraph that
    somebody marked as one function, as of ops that `unfuse` keeps apart.
    """
    new: dict[Expr, Expr] = {}
    for expr in postorder(mod["main"].body):
        new[expr] = item(rebuild(expr, new))
        if isinstance(expr, relay.Call) and isinstance(expr.op, relay.Function):
            names = [] if expr.op.attrs is None else list(expr.op.attrs.keys())
            if "Primitive" in names and not any(owner in names for owner in _OWNED):
                new[expr] = inlined(expr.op, new[expr].args)
    return with_main(mod, new[mod["main"].body])
