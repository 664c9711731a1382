"""Divisions of integers that are data end no process.

LLVM's division by zero, and of the least integer by -1, is undefined: x86 raises SIGFPE, which ends
a server (0.17 and 0.27). Here x / 0 and x % 0 are 0, the least integer by -1 is itself, and its
remainder 0, as in NumPy, and so in ONNX's reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import dtype_of, tir, walk
from .indices import has_any, is_data, named_by_data
from .rewrite import mapped
from .types import PrimExpr, PrimFunc, Stmt, TirNode

_REMAINDERS = ("Mod", "FloorMod")
_KINDS = ("Div", "FloorDiv", *_REMAINDERS)


def without_traps(func: PrimFunc) -> PrimFunc:
    """A PrimFunc whose quotients and remainders of integers that it reads, or that it makes of
    sizes alone, are all defined.

    Those by constants, and by places (how many pixels a window has), stay as they are. What is
    added to a division by a size leaves the loops.
    """
    func = _of_sizes(func)
    variables = _Variables.of(func)
    return _with(func, variables.may_trap) if _has(func, variables.may_trap) else func


def _has(node: TirNode, may_trap: Callable[[PrimExpr], bool]) -> bool:
    found: list[bool] = []
    walk(getattr(node, "body", node), lambda each: found.append(may_trap(each)), *_KINDS)
    return any(found)


def _with(node: TirNode, may_trap: Callable[[PrimExpr], bool]) -> TirNode:
    """A function or an expression with guarded divisions."""

    def changed(each: PrimExpr) -> PrimExpr:
        return _guarded(each) if may_trap(each) else each

    for kind in _KINDS:
        node = mapped(node, kind, changed)
    return node


def _of_sizes(func: PrimFunc) -> PrimFunc:
    """A PrimFunc with guarded divisions in what it stores without reading anything."""
    named = named_by_data(func)
    old: list[PrimExpr] = []

    def visit(store: Stmt) -> None:
        if not is_data(store.value, named):
            old.append(store.value)

    walk(func.body, visit, "BufferStore")
    old = [value for value in old if _has(value, _is_undefined)]
    if not old:
        return func
    new = [_with(value, _is_undefined) for value in old]  # not within another map

    def changed(store: Stmt) -> Stmt:
        found = next((b for a, b in zip(old, new, strict=True) if a.same_as(store.value)), None)
        return store if found is None else tir.BufferStore(store.buffer, found, store.indices)

    return mapped(func, "BufferStore", changed)


def _is_undefined(node: PrimExpr) -> bool:
    """Whether a quotient or a remainder of integers may have no value."""
    return dtype_of(node).startswith(("int", "uint")) and not _is_harmless(node.b)


@dataclass(frozen=True)
class _Variables:
    """Variables of a function: those that stand for something read, and those that loops count."""

    named: set[PrimExpr]
    places: set[PrimExpr]

    @classmethod
    def of(cls, func: PrimFunc) -> _Variables:
        """Those of a function, scheduled or not."""
        places: set[Any] = set()

        def visit(node: Stmt) -> None:
            axes = getattr(node, "iter_vars", None)
            places.update([node.loop_var] if axes is None else [axis.var for axis in axes])

        walk(func.body, visit, "For", "Block", "SBlock")
        return cls(named_by_data(func), places)

    def may_trap(self, node: TirNode) -> bool:
        """Whether a quotient or a remainder is undefined for some data."""
        if not _is_undefined(node):
            return False
        by_size = is_data(node.a, self.named) and not has_any(node.b, self.places)
        return by_size or is_data(node.b, self.named)


def _is_harmless(divisor: PrimExpr) -> bool:
    """A constant by which every integer can be divided."""
    number = divisor.value if isinstance(divisor, tir.Broadcast) else divisor
    return isinstance(number, tir.IntImm) and int(number) not in (0, -1)


def _guarded(node: PrimExpr) -> PrimExpr:
    """By 1 in place of 0 and -1: a remainder is right then, and a quotient is multiplied by these.

    TVM's simplifier would undo it in a branch that knows the divisor, and of a Select both branches
    are computed (0.17 and 0.27). It does not see through bits, nor is a Select around this.
    """
    b, dtype = node.b, dtype_of(node)
    one, is_special = tir.const(1, dtype), _is_zero_or_minus_one(b, dtype)
    result = type(node)(node.a, tir.Select(is_special, one, b))
    is_remainder = type(node).__name__ in _REMAINDERS
    return result if is_remainder else result * tir.Select(is_special, b, one)


def _is_zero_or_minus_one(number: PrimExpr, dtype: str) -> PrimExpr:
    """In a few operations on bits; of a number without a sign whether it is zero."""
    if dtype.startswith("uint"):
        dtype = dtype.removeprefix("u")
        return tir.reinterpret(dtype, number) == tir.const(0, dtype)
    last = tir.const(int(dtype.removeprefix("int").partition("x")[0]) - 1, dtype)
    return (number ^ (number >> last)) == tir.const(0, dtype)
