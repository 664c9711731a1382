"""Relay: equal external functions, which TVM compiles once, and sums of two equal values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import relay

from ...ir.relay.hollow import with_composites
from ...ir.relay.walk import rebuild
from ...tvm import structural_equal, structural_hash, tvm
from ...tvm.types import Expr, Function
from .group import ROOT


def one_symbol_each(mod: tvm.IRModule, functions: Mapping[str, Function]) -> tvm.IRModule:
    """Equal external functions (by name) get one symbol, so that TVM has them compiled once.

    They stay functions of their own: TVM 0.17 inlines external functions into the calls, and its
    call graph loses count of a function that one expression calls twice (call_graph.cc, line 241).
    """
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    known: dict[int, list[tuple[Any, Any]]] = {}  # hash -> (function, symbol)
    for name, func in functions.items():
        bare = with_composites(func, _without_root).without_attr("global_symbol")
        alike = known.setdefault(structural_hash(bare), [])
        symbols_ = (symbol for other, symbol in alike if structural_equal(other, bare))
        symbol = next(symbols_, func.attrs["global_symbol"])
        alike.append((bare, symbol))
        done.update_func(done.get_global_var(name), bare.with_attr("global_symbol", symbol))
    return done


def _without_root(composite: relay.Function) -> relay.Function:
    """A composite that does not tell its root, which differs everywhere."""
    return composite.without_attr(ROOT)


def doubled(expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
    """`y + y` as twice `y`: TVM 0.17 makes that of it anyway, but where `y` is a function that it
    calls, it copies the call, and Inline ends the build (docs/makers/tvm-notes.md). So it does of
    equal ops of `y`, which it takes for one before.
    """
    is_sum = isinstance(expr, relay.Call) and expr.op == relay.op.get("add")
    if not (is_sum and are_one(*expr.args)) or expr.checked_type.dtype == "bool":
        return rebuild(expr, new)
    return relay.multiply(new[expr.args[0]], relay.const(2, expr.checked_type.dtype))


def are_one(a: Expr, b: Expr) -> bool:
    """Whether both are one value, or the same ops of one."""
    if a.same_as(b):
        return True
    if not (isinstance(a, relay.Call) and isinstance(b, relay.Call) and len(a.args) == len(b.args)):
        return False
    is_alike = a.op == b.op and tvm.ir.structural_equal(a.attrs, b.attrs)
    return is_alike and all(map(are_one, a.args, b.args))
