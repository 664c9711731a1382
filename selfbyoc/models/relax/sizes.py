"""Relax: `--shape` and `--size` for a module whose inputs have symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import relax

from ...errors import InputError, did_you_mean
from ...ir.relax.symbols import GIVEN, bounded_by, ranges, symbols, with_ranges
from ...ir.symbols import Range
from ...tvm import tir, tvm
from ...tvm.types import Expr, Function, IRModule, PrimExpr, PrimVar
from ..shapes import Shape, spelled
from ..sizes import Asked, asked_range, check_symbols, check_within


def sized(mod: IRModule, shapes: Mapping[str, Shape], where: str) -> IRModule:
    """The module with these shapes for its inputs; symbols that they do not fix stay open.

    Raises InputError where an input is not there, has other axes or sizes, where two inputs give
    one symbol different sizes, or a size is beyond the module's own bounds for it.
    """
    main = mod["main"]
    inputs = {param.name: param for param in main.params}
    found: dict[Any, tuple[int, str]] = {}
    for name, shape in shapes.items():
        if name not in inputs:
            near = did_you_mean(name, inputs)
            raise InputError(f"shape: no input {name!r}; known: {sorted(inputs)}{near}")
        _bind(found, _axes(inputs[name]), shape, f"{where}: input {name}")
    for symbol, (size, place) in found.items():
        _check_bounds(main, symbol, size, place)
    symbols = {symbol: size for symbol, (size, _) in found.items()}
    return relax.transform.BindSymbolicVars(symbols, "main")(mod) if symbols else mod


def limited(mod: IRModule, sizes: Mapping[str, Asked], where: str) -> IRModule:
    """The module with these sizes for its symbols, or these ranges.

    Raises InputError for what is no symbol of an input, no range, or beyond the module's own.
    """
    main = mod["main"]
    known, own, told = symbols(main), ranges(main), bounded_by(main)
    check_symbols(sizes, list(known), where)
    fixed: dict[Any, int] = {}
    for name, given in sizes.items():
        asked, was = asked_range(name, given), own.get(name, Range())
        check_within(name, asked, was, told.get(name, ""), where)
        if asked.least == asked.most:
            fixed[known[name]] = asked.least
        if asked.most is not None and (asked.most != was.most or name not in told):
            told[name] = GIVEN
        most = was.most if asked.most is None else asked.most
        own[name] = Range(max(asked.least, was.least), most)
    if not sizes:
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), with_ranges(main, own, told))
    return relax.transform.BindSymbolicVars(fixed, "main")(done) if fixed else done


def _axes(param: Expr) -> list[PrimExpr] | None:
    """The sizes of an input; None where not even their number is known."""
    shape = getattr(param.ty, "shape", None)
    if not isinstance(shape, relax.ShapeExpr):
        return None
    return [int(e) if isinstance(e, tir.IntImm) else e for e in shape.values]


def _bind(
    found: dict[PrimVar, tuple[int, str]], axes: list[PrimExpr] | None, shape: Shape, where: str
) -> None:
    if axes is None or len(axes) != len(shape):
        wanted = "of no known rank" if axes is None else spelled(axes)
        raise InputError(f"{where} is {wanted}, the shape given is {spelled(shape)}")
    for axis, size in zip(axes, shape, strict=True):
        if isinstance(axis, tir.Var):
            was, place = found.setdefault(axis, (size, where))
            if was != size:
                raise InputError(f"{where}: {axis} is {size} here and {was} at {place}")
        elif axis != size or not isinstance(axis, int):
            raise InputError(f"{where} is {spelled(axes)}, the shape given is {spelled(shape)}")


def _check_bounds(main: Function, symbol: Expr, size: int, place: str) -> None:
    for end, word in (("lower", "least"), ("upper", "most")):
        bounds = (main.attrs or {}).get(f"tir_var_{end}_bound") or {}
        if str(symbol) not in bounds:
            continue
        bound = int(bounds[str(symbol)])
        if size < bound if end == "lower" else size > bound:
            raise InputError(f"{place}: {symbol} is at {word} {bound}, the size given is {size}")
