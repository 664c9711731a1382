"""Relay: reshapes to what has fewer elements than there are, where extents are `Any` or the shape
is data. TVM 0.17 leaves out the others.

Of a shape that is data a copy of the shape goes through an op of this file, which raises; else a
copy of what is reshaped, where its types do not say that it fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tvm import relay, tir

from .._tvm import tvm
from .._tvm_symbolic import INPUT_ERROR
from ._relay_checks import copied, opaque, rebuilt, register

_OF_DATA, _OF_SHAPE = "tefuse.as_many", "tefuse.shape_of_as_many"
_TEXT = f"{INPUT_ERROR}reshape: expected a shape of as many elements as there are"
_REST = -1


def with_reshapes_checked(mod: tvm.IRModule) -> tvm.IRModule:
    """The module, its main with these checks."""
    return rebuilt(mod, _checked)


def _checked(was: Any, expr: Any, new: Mapping[Any, Any]) -> Any:
    name = getattr(getattr(was, "op", None), "name", "")
    if name not in ("dyn.reshape", "reshape"):
        return expr
    args = list(expr.args)
    if name == "dyn.reshape":
        args[1] = relay.Call(tvm.ir.Op.get(_OF_SHAPE), [args[1], args[0]])
    elif not _fits(was):
        wanted = [int(e) for e in was.attrs.newshape]
        attrs = tvm.ir.make_node("DictAttrs", newshape=wanted)
        args[0] = relay.Call(tvm.ir.Op.get(_OF_DATA), [args[0]], attrs)
    return relay.Call(expr.op, args, expr.attrs, expr.type_args, expr.span)


def _fits(call: Any) -> bool:
    """Whether a reshape has as many elements at all sizes, or is of a kind that nobody writes with
    numbers (-2 to -4).
    """
    shape, wanted = call.args[0].checked_type.shape, [int(e) for e in call.attrs.newshape]
    if not any(isinstance(e, tir.Any) for e in shape) or min(wanted, default=0) < _REST:
        return True
    kept = [n for n, e in enumerate(wanted) if e == 0]
    left = [e for n, e in enumerate(shape) if n not in kept]
    known = math.prod(int(e) for e in left if not isinstance(e, tir.Any))
    asked = math.prod(e for e in wanted if e > 0)
    if _REST in wanted:
        return known % asked == 0
    return not any(isinstance(e, tir.Any) for e in left) and known == asked


def _holds(shape: Sequence[Any], wanted: Sequence[Any]) -> Any:
    """Whether so many elements, of which an axis may be the rest, are those there."""
    one, zero = tir.const(1, "int64"), tir.const(0, "int64")
    sizes = [opaque(extent) for extent in shape]
    total, known, rests = one, one, zero
    for size in sizes:
        total = total * size
    for n, each in enumerate(wanted):
        like = sizes[n] if n < len(sizes) else zero
        size = tir.Select(each == 0, like, each)
        known = known * tir.Select(size < 0, one, size)
        rests = rests + tir.Select(size < 0, one, zero)
    divides = tir.all(known > 0, tir.floormod(total, tir.Max(known, one)) == 0)
    return tir.any(tir.all(rests == 0, known == total), tir.all(rests == 1, divides), total == 0)


def _of_data(attrs: Any, ins: Sequence[Any], _: Any) -> list[Any]:
    (x,) = ins
    wanted = [tir.const(int(e), "int64") for e in attrs["newshape"]]
    return [copied(x, [x], lambda _: _holds(x.shape, wanted), _TEXT)]


def _of_shape(attrs: Any, ins: Sequence[Any], _: Any) -> list[Any]:
    wanted, x = ins
    count = int(wanted.shape[0])

    def holds(given: Sequence[Any]) -> Any:
        return _holds(x.shape, [given[0].vload([n]).astype("int64") for n in range(count)])

    return [copied(wanted, [wanted, x], holds, _TEXT)]


register(_OF_DATA, _of_data)
register(_OF_SHAPE, _of_shape)
