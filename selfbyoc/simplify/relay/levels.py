"""Relay: levels as kernels read them (simplify/levels.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relay

from ...ir.relay.emit import constant
from ...ir.relay.walk import postorder, rebuild
from ...tvm import tvm
from ..levels import (
    MOVES,
    alike,
    around_zero,
    dequantised,
    is_level,
    is_middle,
    made_of,
    one_number,
    pads,
    shares,
    stays,
)
from .exprs import array_of, dtype_of, name_of, with_main

_OF_CONV = (
    "strides", "padding", "dilation", "groups", "channels", "kernel_size", "data_layout",
    "kernel_layout", "out_layout",
)  # fmt: skip


def levels_as_read(mod: tvm.IRModule) -> tvm.IRModule:
    """The typed module; each reader has its own dequantize, moves are of levels, zero points are
    numbers.
    """
    levels = _Levels()
    for expr in postorder(mod["main"].body):
        levels.new[expr] = levels.made(expr)
    return with_main(mod, levels.new[mod["main"].body])


class _Levels:
    """The expressions of a function over levels."""

    def __init__(self) -> None:
        self.new: dict[Any, Any] = {}
        self.read: set[Any] = set()
        self.shared: dict[Any, Any] = {}  # what elementwise readers have
        self.rewrites = {
            "qnn.quantize": self._known, "qnn.dequantize": _constant, "cast": self._of_integers,
            "transpose": self._transposed, **dict.fromkeys(MOVES - {"transpose"}, self._moved),
        }  # fmt: skip

    def made(self, expr: Any) -> Any:
        """One expression, its inputs made before."""
        if not isinstance(expr, relay.Call):
            return rebuild(expr, self.new)
        rewrite = self.rewrites.get(getattr(expr.op, "name", ""))
        found = None if rewrite is None else rewrite(expr)
        if found is not None:
            return found
        beside = [isinstance(arg, relay.Constant) for arg in expr.args]
        own = self._shared if shares(name_of(expr), beside) else self._own
        args = _unheld(expr, [own(self.new[arg]) for arg in expr.args])
        if name_of(expr) in ("qnn.quantize", "qnn.dequantize"):
            args = [*args[:2], _number(args[2])]
        if all(new.same_as(old) for new, old in zip(args, expr.args, strict=True)):
            return expr
        return relay.Call(expr.op, args, expr.attrs, expr.type_args, expr.span)

    def _shared(self, arg: Any) -> Any:
        if name_of(arg) != "qnn.dequantize":
            return arg
        key = made_of(arg.args[0], list(map(array_of, arg.args[1:]))) or arg
        if key not in self.shared:
            self.shared[key] = self._own(arg)
        return self.shared[key]

    def _own(self, arg: Any) -> Any:
        if isinstance(arg, relay.Tuple):
            fields = [self._own(field) for field in arg.fields]
            same = all(new.same_as(old) for new, old in zip(fields, arg.fields, strict=True))
            return arg if same else relay.Tuple(fields)
        if name_of(arg) != "qnn.dequantize":
            return arg
        if arg not in self.read:
            self.read.add(arg)
            return arg
        return relay.Call(arg.op, arg.args, arg.attrs, arg.type_args, arg.span)

    def _known(self, call: Any) -> Any | None:
        """A quantize of what was just dequantised alike: the levels that it was made of. One of
        what was moved, or joined: that, of levels.
        """
        return self._levels_of(call, self.new[call.args[0]])

    def _levels_of(self, call: Any, before: Any) -> Any | None:
        if name_of(before) in (*MOVES, "concatenate"):
            return self._earlier(call, before)
        if not is_dequantized(before):
            return None
        pairs = zip(map(array_of, before.args[1:]), map(array_of, call.args[1:]), strict=True)
        if not alike(pairs):
            return None
        return before.args[0] if dtype_of(before.args[0]) == str(call.attrs.out_dtype) else None

    def _earlier(self, call: Any, before: Any) -> Any | None:
        if not _is_of_one(call):
            return None
        moved, *others = before.args
        if name_of(before) == "concatenate":
            if not isinstance(moved, relay.Tuple):
                return None
            levels = relay.Tuple([self._quantized(call, part) for part in moved.fields])
        else:
            levels = self._quantized(call, moved)
        return relay.Call(before.op, [levels, *others], before.attrs)

    def _quantized(self, call: Any, value: Any) -> Any:
        """What a quantize makes of another value."""
        known = self._levels_of(call, value)
        if known is not None:
            return known
        return relay.Call(call.op, [self._own(value), *call.args[1:2], _number(call.args[2])],
                          call.attrs)  # fmt: skip

    def _moved(self, call: Any) -> Any | None:
        """A move of dequantised levels as one of the levels, dequantised after it."""
        before = self.new[call.args[0]]
        if not is_dequantized(before) or not _is_of_one(before):
            return None
        others = [self.new[arg] for arg in call.args[1:]]
        moved = relay.Call(call.op, [before.args[0], *others], call.attrs)
        return _dequantize(moved, *before.args[1:])

    def _transposed(self, call: Any) -> Any | None:
        """A weight of levels by units, [units, in]: transposed now."""
        before = self.new[call.args[0]]
        array = array_of(before.args[0]) if is_dequantized(before) else None
        if array is None or array.ndim != 2 or tuple(map(int, call.attrs.axes or (1, 0))) != (1, 0):
            return self._moved(call)
        turned = constant(np.ascontiguousarray(array.T))
        scale, zero = before.args[1:]
        return _dequantize(turned, scale, zero, 1 - int(before.attrs.axis) % 2)

    def _of_integers(self, call: Any) -> Any | None:
        """A product of levels in int32 as floats, perhaps with a bias or in other rows: of
        dequantised ones.
        """
        around = self.new[call.args[0]]
        product = around.args[0] if name_of(around) in ("reshape", "add") else around
        made = self._of_floats(product) if str(call.attrs.dtype) == "float32" else None
        if made is None or around is product:
            return made
        if name_of(around) == "reshape":
            return relay.Call(around.op, [made], around.attrs)
        return relay.add(made, relay.cast(around.args[1], "float32"))

    def _of_floats(self, product: Any) -> Any | None:
        if name_of(product) not in ("qnn.dense", "qnn.conv2d"):
            return None
        x, weight, *zeros = product.args[:4]
        zeros[1] = _number(zeros[1])
        array, zero = array_of(weight), array_of(zeros[1])
        if array is None or zero is None or zero.size != 1 or not _holds(x, zeros[0]):
            return None  # no kernel of levels takes it: floats would not be exact
        if not is_middle(zero, str(array.dtype)):
            if (moved := around_zero(array, zero, 0)) is None:
                return None
            weight, zeros[1] = constant(moved), constant(np.zeros((), "int32"))
        one = constant(np.ones((), "float32"))
        both = [_dequantize(a, one, z, axis=0) for a, z in zip((x, weight), zeros, strict=True)]
        if name_of(product) == "qnn.dense":
            return relay.nn.dense(*both)
        told = {name: getattr(product.attrs, name) for name in _OF_CONV}
        return relay.nn.conv2d(*both, **told)


def _unheld(call: Any, args: list[Any]) -> list[Any]:
    """The inputs of a convolution, floats that ops make where padding could not hold a zero point;
    of another op these.
    """
    if not pads(name_of(call)) or name_of(args[0]) != "qnn.dequantize":
        return args
    levels, scale, zero = args[0].args
    if _holds(levels, zero):
        return args
    ndim = len(relay.transform.InferTypeLocal(levels).shape)
    scale, zero = (_along(factor, ndim, int(args[0].attrs.axis)) for factor in (scale, zero))
    centred = relay.subtract(relay.cast(levels, "int32"), zero)
    floats = relay.multiply(relay.cast(centred, "float32"), scale)
    return [relay.cast(floats, args[0].attrs.out_dtype), *args[1:]]


def _holds(levels: Any, zero: Any) -> bool:
    """Whether a byte of the levels' dtype holds their zero point, which qnn has in int32."""
    array, first = array_of(zero), zero
    while name_of(first) in MOVES:
        first = first.args[0]
    dtype = dtype_of(first.args[0] if name_of(first) == "cast" else first)
    return is_level(array, dtype, dtype_of(levels))


def _along(factor: Any, ndim: int, axis: int) -> Any:
    """One number, or those of an axis, beside all others."""
    if len(relay.transform.InferTypeLocal(factor).shape) == 0:
        return factor
    return relay.reshape(factor, [-1, *[1] * ((-1 - axis) % ndim)])


def _constant(call: Any) -> Any | None:
    """Constant levels as kernels take them: a bias as floats, a weight from its middle."""
    arrays = [array_of(arg) for arg in call.args]
    if any(array is None for array in arrays) or not is_dequantized(call):
        return None
    (levels, _, zero), axis = arrays, int(call.attrs.axis)
    if not stays(levels):
        return constant(dequantised(arrays, axis))
    if is_middle(zero, str(levels.dtype)):
        return None
    moved = around_zero(levels, zero, axis)
    none = constant(np.zeros((), "int32"))
    return None if moved is None else _dequantize(constant(moved), call.args[1], none, axis)


def _is_of_one(call: Any) -> bool:
    """Whether a known scale and zero point are those of all, and order stays."""
    scale, zero = map(array_of, call.args[1:])
    known = scale is not None and zero is not None and scale.size * zero.size == 1
    return known and bool(scale.flat[0] > 0)


def _dequantize(levels: Any, scale: Any, zero: Any, axis: int = -1) -> Any:
    return relay.qnn.op.dequantize(levels, scale, zero, axis)


def is_dequantized(expr: Any) -> bool:
    """Whether it makes float32 of levels."""
    return name_of(expr) == "qnn.dequantize" and str(expr.attrs.out_dtype) == "float32"


def _number(zero: Any) -> Any:
    array = array_of(zero)
    number = None if array is None else one_number(array)
    return zero if number is None else constant(np.asarray(number))
