"""Relay: shapes that do not fit, where extents are `Any` or the shape is data. TVM 0.17 leaves out
elements that a reshape has no place for, and broadcasts what is no 1 from beyond its end.

Of a shape that is data a copy of the shape goes through a check, which raises; else a
copy of what is given another one, where its types do not say that it fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tvm import relay, tir

from ...tvm import tvm
from ...tvm.types import Expr, PrimExpr
from .checks import Checks, Holds

_TEXTS = {
    "reshape": "expected a shape of as many elements as there are",
    "broadcast_to": "expected sizes of 1, or those of the shape",
}
_REST = -1


def with_shapes_checked(mod: tvm.IRModule) -> tvm.IRModule:
    """The module, its main with these checks."""
    checks = Checks(mod)

    def checked(was: Expr, expr: Expr, _: Mapping[Expr, Expr]) -> Expr:
        name = getattr(getattr(was, "op", None), "name", "")
        how = name.removeprefix("dyn.")
        if how not in _TEXTS:
            return expr
        args, given = list(expr.args), [arg.checked_type for arg in was.args]
        ranks, text = len(given[0].shape), f"{how}: {_TEXTS[how]}"
        if name != how:
            holds = _of_shape(how, int(given[1].shape[0]))
            args[1] = checks.copy(args[1], given[1], args[0], ranks, holds, text)
        elif not _FITS[how](given[0].shape, _asked(was)):
            args[0] = checks.copy(args[0], given[0], args[0], ranks, _of_data(how, was), text)
        return relay.Call(expr.op, args, expr.attrs, expr.type_args, expr.span)

    return checks.rebuilt(checked)


def _asked(call: Expr) -> list[int]:
    """The shape that an op is told; -1 for a size that is open there."""
    told = call.attrs.newshape if call.op.name == "reshape" else call.attrs.shape
    return [_REST if isinstance(e, tir.Any) else int(e) for e in told]


def _reshape_fits(shape: Sequence[PrimExpr], wanted: Sequence[int]) -> bool:
    """Whether a reshape has as many elements at all sizes, or is of a kind that nobody writes with
    numbers (-2 to -4).
    """
    if not any(isinstance(e, tir.Any) for e in shape) or min(wanted, default=0) < _REST:
        return True
    kept = [n for n, e in enumerate(wanted) if e == 0]
    left = [e for n, e in enumerate(shape) if n not in kept]
    known = math.prod(int(e) for e in left if not isinstance(e, tir.Any))
    asked = math.prod(e for e in wanted if e > 0)
    if _REST in wanted:
        return known % asked == 0
    return not any(isinstance(e, tir.Any) for e in left) and known == asked


def _broadcast_fits(shape: Sequence[PrimExpr], wanted: Sequence[int]) -> bool:
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return not any(isinstance(e, tir.Any) and asked > 1 for e, asked in pairs)


_FITS = {"reshape": _reshape_fits, "broadcast_to": _broadcast_fits}


def _broadcasts(sizes: Sequence[PrimExpr], wanted: Sequence[PrimExpr]) -> PrimExpr:
    """Whether each axis has the size that is asked for, or 1."""
    pairs = zip(reversed(sizes), reversed(wanted), strict=False)
    each = [tir.any(size == 1, asked < 0, size == asked) for size, asked in pairs]
    return tir.all(*each) if each else tir.const(1, "bool")


def _reshapes(sizes: Sequence[PrimExpr], wanted: Sequence[PrimExpr]) -> PrimExpr:
    """Whether so many elements, of which an axis may be the rest, are those there."""
    one, zero = tir.const(1, "int64"), tir.const(0, "int64")
    total, known, rests = one, one, zero
    for size in sizes:
        total = total * size
    for n, each in enumerate(wanted):
        like = sizes[n] if n < len(sizes) else zero
        size = tir.Select(each == 0, like, each)
        known = known * tir.Select(size < 0, one, size)
        rests = rests + tir.Select(size < 0, one, zero)
    told = tir.all(*(each >= _REST for each in wanted)) if wanted else tir.const(1, "bool")
    divides = tir.all(known > 0, tir.floormod(total, tir.Max(known, one)) == 0)
    fits = tir.any(tir.all(rests == 0, known == total), tir.all(rests == 1, divides), total == 0)
    return tir.all(told, fits)


_HOLDS = {"reshape": _reshapes, "broadcast_to": _broadcasts}


def _of_data(how: str, call: Expr) -> Holds:
    wanted = [tir.const(e, "int64") for e in _asked(call)]
    return lambda _, sizes: _HOLDS[how](sizes, wanted)


def _of_shape(how: str, count: int) -> Holds:
    return lambda element, sizes: _HOLDS[how](sizes, [element(n) for n in range(count)])
