"""Relay: levels as kernels read them (partition/levels.py)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from tvm import relay

from .._tvm import constant_numpy, tvm
from ..ir._relay_emit import constant
from ..ir._relay_walk import postorder, rebuild
from ..ops.few_bits import dequantised_groups
from ._relay_fold import fold
from ._relay_halves import is_half_weight
from .levels import (
    MOVES, alike, around_zero, dequantised, is_middle, made_of, one_number, shares, stays,
)  # fmt: skip

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
    return _with_body(mod, levels.new[mod["main"].body])


def with_float_weights(mod: tvm.IRModule, taken: Collection[Any]) -> tvm.IRModule:
    """A prepared module whose constant levels are floats, but for those that are taken; itself
    where there are none.
    """
    new: dict[Any, Any] = {}
    for expr in postorder(mod["main"].body):
        found = None if expr in taken else _known_floats(expr)
        new[expr] = rebuild(expr, new) if found is None else found
    done = _with_body(mod, new[mod["main"].body])
    return mod if done.same_as(mod) else fold(done)


def _known_floats(expr: Any) -> Any | None:
    """Constant levels as floats."""
    if is_half_weight(expr):
        return constant(constant_numpy(expr.args[0]).astype("float32"))
    is_of_groups = _name(expr) == "selfbyoc.dequantize_groups"
    if not is_of_groups and not _is_dequantized(expr):
        return None
    arrays = [_array(arg) for arg in expr.args]
    if any(array is None for array in arrays):
        return None
    if not is_of_groups:
        return constant(dequantised(arrays, int(expr.attrs.axis)))
    told = {name: int(expr.attrs[name]) for name in ("bits", "group")}
    return constant(dequantised_groups(arrays, **told).astype("float32"))


def _with_body(mod: tvm.IRModule, body: Any) -> tvm.IRModule:
    main = mod["main"]
    if body.same_as(main.body):
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    known = relay.Function(main.params, body, main.ret_type, main.type_params, main.attrs)
    done.update_func(done.get_global_var("main"), known)
    return relay.transform.InferType()(done)


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
        own = self._shared if shares(_name(expr), beside) else self._own
        args = [own(self.new[arg]) for arg in expr.args]
        if _name(expr) in ("qnn.quantize", "qnn.dequantize"):
            args = [*args[:2], _number(args[2])]
        if all(new.same_as(old) for new, old in zip(args, expr.args, strict=True)):
            return expr
        return relay.Call(expr.op, args, expr.attrs, expr.type_args, expr.span)

    def _shared(self, arg: Any) -> Any:
        if _name(arg) != "qnn.dequantize":
            return arg
        key = made_of(arg.args[0], list(map(_array, arg.args[1:]))) or arg
        if key not in self.shared:
            self.shared[key] = self._own(arg)
        return self.shared[key]

    def _own(self, arg: Any) -> Any:
        if isinstance(arg, relay.Tuple):
            fields = [self._own(field) for field in arg.fields]
            same = all(new.same_as(old) for new, old in zip(fields, arg.fields, strict=True))
            return arg if same else relay.Tuple(fields)
        if _name(arg) != "qnn.dequantize":
            return arg
        if arg not in self.read:
            self.read.add(arg)
            return arg
        return relay.Call(arg.op, arg.args, arg.attrs, arg.type_args, arg.span)

    def _known(self, call: Any) -> Any | None:
        """A quantize of what was just dequantised alike: the levels that it was made of."""
        before = self.new[call.args[0]]
        if not _is_dequantized(before):
            return None
        pairs = zip(map(_array, before.args[1:]), map(_array, call.args[1:]), strict=True)
        if not alike(pairs):
            return None
        return before.args[0] if _dtype(before.args[0]) == str(call.attrs.out_dtype) else None

    def _moved(self, call: Any) -> Any | None:
        """A move of dequantised levels as one of the levels, dequantised after it."""
        before = self.new[call.args[0]]
        scale = _array(before.args[1]) if _is_dequantized(before) else None
        zero = None if scale is None else _array(before.args[2])
        if scale is None or zero is None or scale.size * zero.size != 1 or scale.flat[0] <= 0:
            return None
        others = [self.new[arg] for arg in call.args[1:]]
        moved = relay.Call(call.op, [before.args[0], *others], call.attrs)
        return _dequantize(moved, *before.args[1:])

    def _transposed(self, call: Any) -> Any | None:
        """A weight of levels by units, [units, in]: transposed now."""
        before = self.new[call.args[0]]
        array = _array(before.args[0]) if _is_dequantized(before) else None
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
        product = around.args[0] if _name(around) in ("reshape", "add") else around
        made = self._of_floats(product) if str(call.attrs.dtype) == "float32" else None
        if made is None or around is product:
            return made
        if _name(around) == "reshape":
            return relay.Call(around.op, [made], around.attrs)
        return relay.add(made, relay.cast(around.args[1], "float32"))

    def _of_floats(self, product: Any) -> Any | None:
        if _name(product) not in ("qnn.dense", "qnn.conv2d"):
            return None
        x, weight, *zeros = product.args[:4]
        array, zero = _array(weight), _array(zeros[1])
        if array is None or zero is None or zero.size != 1:
            return None  # no kernel of levels takes it: floats would not be exact
        if not is_middle(zero, str(array.dtype)):
            if (moved := around_zero(array, zero, 0)) is None:
                return None
            weight, zeros[1] = constant(moved), constant(np.zeros((), "int32"))
        one = constant(np.ones((), "float32"))
        both = [_dequantize(a, one, z, axis=0) for a, z in zip((x, weight), zeros, strict=True)]
        if _name(product) == "qnn.dense":
            return relay.nn.dense(*both)
        told = {name: getattr(product.attrs, name) for name in _OF_CONV}
        return relay.nn.conv2d(*both, **told)


def _constant(call: Any) -> Any | None:
    """Constant levels as kernels take them: a bias as floats, a weight from its middle."""
    arrays = [_array(arg) for arg in call.args]
    if any(array is None for array in arrays) or not _is_dequantized(call):
        return None
    (levels, _, zero), axis = arrays, int(call.attrs.axis)
    if not stays(levels):
        return constant(dequantised(arrays, axis))
    if is_middle(zero, str(levels.dtype)):
        return None
    moved = around_zero(levels, zero, axis)
    none = constant(np.zeros((), "int32"))
    return None if moved is None else _dequantize(constant(moved), call.args[1], none, axis)


def _dequantize(levels: Any, scale: Any, zero: Any, axis: int = -1) -> Any:
    return relay.qnn.op.dequantize(levels, scale, zero, axis)


def _is_dequantized(expr: Any) -> bool:
    """Whether it makes float32 of levels."""
    return _name(expr) == "qnn.dequantize" and str(expr.attrs.out_dtype) == "float32"


def _name(expr: Any) -> str:
    return str(getattr(expr.op, "name", "")) if isinstance(expr, relay.Call) else ""


def _array(expr: Any) -> Any:
    return constant_numpy(expr) if isinstance(expr, relay.Constant) else None


def _dtype(expr: Any) -> str:
    return str(relay.transform.InferTypeLocal(expr).dtype)


def _number(zero: Any) -> Any:
    array = _array(zero)
    number = None if array is None else one_number(array)
    return zero if number is None else constant(np.asarray(number))
