"""Relax: which sizes a kernel's symbols may have, from what main is promised of its own."""

from __future__ import annotations

from tvm import relax

from ...ir.relax.symbols import ranges, symbols
from ...ir.symbols import Range
from ...tvm import Analyzer, tir, tvm
from ...tvm.types import Function

_ANY = 2**31 - 1  # that an index of 32 bits reaches: no size is above


def ranges_of(mod: tvm.IRModule, names: set[str]) -> dict[str, dict[str, Range]]:
    """Function -> symbol -> its range, of those that are bounded in all calls from main."""
    main = mod["main"]
    promised, own = ranges(main), symbols(main)
    found: dict[str, dict[str, Range]] = {}
    if not promised:
        return found
    analyzer = Analyzer()
    for name, var in own.items():
        each = promised.get(name, Range())
        most = _ANY if each.most is None else each.most
        analyzer.bind(var, tvm.ir.Range.from_min_extent(each.least, most + 1 - each.least))
    for block in main.body.blocks:
        for call in (b.value for b in block.bindings):
            if isinstance(call, relax.Call) and getattr(call.op, "name_hint", "") in names:
                here = _of_call(mod[call.op], call, analyzer)
                _widen(found.setdefault(call.op.name_hint, here), here)
    return {name: _bounded(of) for name, of in found.items()}


def _of_call(func: Function, call: relax.Call, analyzer: Analyzer) -> dict[str, Range]:
    """The ranges that one call gives to a function's symbols."""
    found: dict[str, Range] = {}
    for param, arg in zip(func.params, call.args, strict=True):
        inner, outer = (getattr(getattr(e, "ty", None), "shape", None) for e in (param, arg))
        if not isinstance(inner, relax.ShapeExpr) or not isinstance(outer, relax.ShapeExpr):
            continue
        for extent, given in zip(inner.values, outer.values, strict=True):
            if isinstance(extent, tir.Var):
                bound = analyzer.const_int_bound(given)
                most = int(bound.max_value)
                found[str(extent.name)] = Range(
                    max(int(bound.min_value), 0), most if most < _ANY else None
                )
    return found


def _widen(known: dict[str, Range], here: dict[str, Range]) -> None:
    """Make the ranges hold what another call gives, too."""
    for name, other in here.items():
        one = known.get(name, other)
        ends = (one.most, other.most)
        most = None if None in ends else max(e for e in ends if e is not None)
        known[name] = Range(min(one.least, other.least), most)


def _bounded(found: dict[str, Range]) -> dict[str, Range]:
    """Those that say something: that a size is 1 or more changes no kernel."""
    least = {name: each.least if each.least > 1 else 0 for name, each in found.items()}
    every = {name: Range(least[name], each.most) for name, each in found.items()}
    return {name: each for name, each in every.items() if each != Range()}
