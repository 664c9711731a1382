"""Relax: functions of symbolic shapes, read at numbers for the symbols.

See symbols.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tvm import relax

from ...graph import Symbol
from ...tvm import Analyzer, dtype_of, tir, tvm
from ...tvm.rewrite import substitute
from ...tvm.types import Attr, Expr, Function, PrimExpr, Type
from ..symbols import Range
from ..symbols import usual_sizes as numbers

# TVM's attributes of a function: {symbol: largest size}, {symbol: least size}.
BOUNDS, LEAST = "tir_var_upper_bound", "tir_var_lower_bound"
# Ours: {symbol: what says the largest}, a node of the model or the user.
BOUNDED_BY, GIVEN = "selfbyoc.bounded_by", "given"

_sizes: ContextVar[Mapping[Any, int] | None] = ContextVar("selfbyoc_sizes", default=None)

_by_name: ContextVar[bool] = ContextVar("selfbyoc_by_name", default=False)


def symbols(func: Function) -> dict[str, Expr]:
    """The variables that are an extent of a parameter each, by name; of several of one name, the
    first.
    """
    found: dict[str, Any] = {}
    for extent in (e for p in func.params for e in extents_of(p.ty)):
        if isinstance(extent, tir.Var):
            found.setdefault(str(extent.name), extent)
    return found


def places(func: Function) -> dict[str, tuple[tuple[int, int], ...]]:
    """The parameters and axes that have each symbol for their extent, or an expression of symbols,
    as text: `m + n`.
    """
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in symbols(func)}
    for position, param in enumerate(func.params):
        if not isinstance(param.ty, relax.TensorType):
            continue
        for axis, extent in enumerate(extents_of(param.ty)):
            if not isinstance(extent, tir.IntImm):
                found.setdefault(text_of(extent), []).append((position, axis))
    return {name: tuple(at) for name, at in found.items()}


def casts(func: Function) -> dict[str, tuple[tuple[int, int], ...]]:
    """The parameters and axes whose extents are cast to expressions, as text: `n // 32 * 32`."""
    position = {param: n for n, param in enumerate(func.params)}
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for binding in (b for block in func.body.blocks for b in block.bindings):
        is_cast = isinstance(binding, relax.MatchCast) and binding.value in position
        if not is_cast or not isinstance(binding.var.ty, relax.TensorType):
            continue
        at = position[binding.value]
        for axis, extent in enumerate(extents_of(binding.var.ty)):
            if not isinstance(extent, (tir.IntImm, tir.Var)):
                found[text_of(extent)] = (*found.get(text_of(extent), ()), (at, axis))
    return found


def ranges(func: Function) -> dict[str, Range]:
    """The sizes that a function's attributes allow its symbols; those that they say nothing of are
    left out.
    """
    least, most = _numbers(func, LEAST), _numbers(func, BOUNDS)
    names = (name for name in {**least, **most} if least.get(name, 0) > 0 or name in most)
    return {name: Range(max(least.get(name, 0), 0), most.get(name)) for name in names}


def bounded_by(func: Function) -> dict[str, str]:
    """Who says what the largest sizes are, as far as that is known."""
    return {str(name): str(text) for name, text in _attr(func, BOUNDED_BY).items()}


def with_ranges(func: Function, found: Mapping[str, Range], by: Mapping[str, str]) -> Function:
    """The function with these ranges of its symbols, and who says so."""
    told = {
        LEAST: {name: each.least for name, each in found.items() if each.least > 0},
        BOUNDS: {name: each.most for name, each in found.items() if each.most is not None},
        BOUNDED_BY: dict(by),
    }
    for key, values in told.items():
        if values or _attr(func, key):
            func = func.with_attr(key, values)
    return func


def _numbers(func: Function, key: str) -> dict[str, int]:
    return {str(name): int(size) for name, size in _attr(func, key).items()}


def _attr(func: Function, key: str) -> dict[str, Attr]:
    attrs = dict(func.attrs.items()) if func.attrs else {}
    return dict((attrs.get(key) or {}).items())


def usual_sizes(func: Function, within: Mapping[str, Range]) -> dict[str, int]:
    """A size for each symbol that nothing else in the function has."""
    known = {int(e) for e in _all_extents(func) if isinstance(e, tir.IntImm)}
    return dict(numbers(symbols(func), known, within))


def _all_extents(func: Function) -> Iterator[PrimExpr]:
    for var in (*func.params, *(b.var for block in func.body.blocks for b in block.bindings)):
        yield from extents_of(var.ty)


def extents_of(ty: Type) -> Iterator[PrimExpr]:
    """All extents of a type, those of a tuple's fields too."""
    if isinstance(ty, relax.TupleType):
        for field in ty.fields:
            yield from extents_of(field)
    shape = getattr(ty, "shape", None)
    yield from getattr(shape, "values", None) or ()


@contextmanager
def at(func: Function, sizes: Mapping[str, int]) -> Iterator[None]:
    """Read the function with these numbers for its symbols, by name."""
    variables = symbols(func)
    token = _sizes.set({variables[name]: size for name, size in sizes.items()})
    try:
        yield
    finally:
        _sizes.reset(token)


@contextmanager
def by_name() -> Iterator[None]:
    """Read symbolic extents as texts: `n`, `n * 2`."""
    token = _by_name.set(True)
    try:
        yield
    finally:
        _by_name.reset(token)


def number(extent: PrimExpr) -> Any:
    """An extent as a number, if it is one here; else None, or its text."""
    if isinstance(extent, tir.IntImm):
        return int(extent)
    if _by_name.get() and isinstance(extent, tvm.ir.Node):
        return text_of(extent)
    sizes = _sizes.get()
    if sizes and isinstance(extent, tir.Var) and extent in sizes:
        return sizes[extent]
    if not sizes or not isinstance(extent, tvm.ir.Node):
        return None
    known = {var: tir.IntImm(dtype_of(var), int(size)) for var, size in sizes.items()}
    found = Analyzer().simplify(substitute(extent, known))
    return Symbol(int(found), text_of(extent)) if isinstance(found, tir.IntImm) else None


def text_of(extent: PrimExpr) -> str:
    """`n`, `n * 2`, `min(6, n)`, without TVM's types and modules."""
    text = str(extent.name if isinstance(extent, tir.Var) else extent)  # as script, a plain name
    return re.sub(r"T\.int\d+\((-?\d+)\)", r"\1", text).replace("T.", "")
