"""Relay: levels as kernels read them (partition/levels.py)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from tvm import relay

from .._tvm import constant_numpy, tvm
from ..ir._relay_emit import constant
from ..ir._relay_walk import postorder, rebuild
from .levels import MOVES, alike, dequantised, is_middle, one_number


def levels_as_read(mod: tvm.IRModule) -> tvm.IRModule:
    """The typed module; each reader has its own dequantize, moves are of levels, zero points are
    numbers.
    """
    levels = _Levels()
    for expr in postorder(mod["main"].body):
        levels.new[expr] = levels.made(expr)
    return _with_body(mod, levels.new[mod["main"].body])


def weights_as_floats(mod: tvm.IRModule, taken: Collection[Any]) -> tvm.IRModule:
    """The typed module; constant levels that no kernel takes are floats: nobody dequantises them in
    each call.
    """
    new: dict[Any, Any] = {}
    for expr in postorder(mod["main"].body):
        found = None
        if _is_dequantized(expr) and expr not in taken:
            arrays = [_array(arg) for arg in expr.args]
            if not any(array is None for array in arrays):
                found = constant(dequantised(arrays, int(expr.attrs.axis)))
        new[expr] = rebuild(expr, new) if found is None else found
    return _with_body(mod, new[mod["main"].body])


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
        self.rewrites = {
            "qnn.quantize": self._known, "qnn.dequantize": _narrow, "cast": self._of_integers,
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
        args = [self._own(self.new[arg]) for arg in expr.args]
        if _name(expr) in ("qnn.quantize", "qnn.dequantize"):
            args = [*args[:2], _number(args[2])]
        if all(new.same_as(old) for new, old in zip(args, expr.args, strict=True)):
            return expr
        return relay.Call(expr.op, args, expr.attrs, expr.type_args, expr.span)

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
        """A product of levels in int32 as floats, perhaps in other rows: of dequantised ones."""
        shaped = self.new[call.args[0]]
        product = shaped.args[0] if _name(shaped) == "reshape" else shaped
        if _name(product) != "qnn.dense" or str(call.attrs.dtype) != "float32":
            return None
        x, weight, *zeros = product.args[:4]
        array = _array(weight)
        if array is None or not is_middle(_array(zeros[1]), str(array.dtype)):
            return None  # no kernel of levels takes it: floats would not be exact
        one = constant(np.ones((), "float32"))
        both = [_dequantize(a, one, z, axis=0) for a, z in zip((x, weight), zeros, strict=True)]
        made = relay.nn.dense(*both)
        if shaped is product:
            return made
        return relay.Call(shaped.op, [made], shaped.attrs)


def _narrow(call: Any) -> Any | None:
    """A dequantised bias of 32 bits: it is one of floats."""
    arrays = [_array(arg) for arg in call.args]
    if arrays[0] is None or arrays[0].dtype != np.int32 or not _is_dequantized(call):
        return None
    if any(array is None for array in arrays):
        return None
    return constant(dequantised(arrays, int(call.attrs.axis)))


def _dequantize(levels: Any, scale: Any, zero: Any, axis: int = -1) -> Any:
    return relay.qnn.op.dequantize(levels, scale, zero, axis)


def _is_dequantized(expr: Any) -> bool:
    """Whether it makes float32 of levels."""
    return _name(expr) == "qnn.dequantize" and str(expr.attrs.out_dtype) == "float32"


def _name(expr: Any) -> str:
    return str(getattr(expr.op, "name", "")) if isinstance(expr, relay.Call) else ""


def _array(expr: Any) -> np.ndarray | None:
    return constant_numpy(expr) if isinstance(expr, relay.Constant) else None


def _dtype(expr: Any) -> str:
    return str(relay.transform.InferTypeLocal(expr).dtype)


def _number(zero: Any) -> Any:
    array = _array(zero)
    number = None if array is None else one_number(array)
    return zero if number is None else constant(np.asarray(number))
