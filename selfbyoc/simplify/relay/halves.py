"""Relay: halves are storage (simplify/halves.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relay

from ...graph import HALVES
from ...ir.relay.emit import constant
from ...ir.relay.walk import children, postorder, rebuild
from ...tvm import attrs_dict, constant_numpy, tvm
from ..halves import LEAST
from .exprs import name_of

_AS_THEY_ARE = ("selfbyoc.dequantize_groups",)


def with_floats(mod: tvm.IRModule) -> tvm.IRModule:
    """The typed module, computing in float32; itself where it has no halves, or branches."""
    main = mod["main"]
    found = list(postorder(main.body))
    if any(isinstance(expr, relay.If) for expr in found) or not any(map(_is_half, found)):
        return mod
    floats = _Floats()
    for expr in found:
        floats.new[expr] = floats.made(expr)
    body = floats.returned(main.body)
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    known = relay.Function(main.params, body, main.ret_type, main.type_params, main.attrs)
    done.update_func(done.get_global_var("main"), known)
    return relay.transform.InferType()(done)


class _Floats:
    """What stands for each expression; of those in `wide` it is of floats where they are not."""

    def __init__(self) -> None:
        self.new: dict[Any, Any] = {}
        self.wide: set[Any] = set()

    def made(self, expr: Any) -> Any:
        """One expression, its inputs made before."""
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            return self._called(expr)
        if isinstance(expr, relay.Tuple) and _is_half(expr):
            self.wide.add(expr)
            return relay.Tuple(list(map(self._float, expr.fields)), expr.span)
        if isinstance(expr, relay.TupleGetItem):
            if expr.tuple_value in self.wide and _is_half(expr):
                self.wide.add(expr)
            return rebuild(expr, self.new)
        if isinstance(expr, relay.Call):  # of a function, whose types are fixed
            return relay.Call(expr.op, list(map(self.returned, expr.args)), expr.attrs)
        return rebuild(expr, self.new)

    def _called(self, call: Any) -> Any:
        was_half = any(map(_is_half, call.args))
        # What makes halves of floats rounds them, and a weight is a kernel's, if one takes it.
        if not was_half or call.op.name in _AS_THEY_ARE or is_half_weight(call):
            return rebuild(call, self.new)
        if call.op.name == "cast":
            return self._cast(call)
        args = list(map(self._float, call.args))
        if call.op.name == "nn.dense" and (weight := _weight(call.args[1])) is not None:
            args[1] = relay.cast(weight, "float32")
        if _is_half(call):
            self.wide.add(call)
        return relay.Call(call.op, args, _of_floats(call), (), call.span)

    def _cast(self, call: Any) -> Any:
        """Of halves: floats are what they stand for."""
        value, target = self._float(call.args[0]), str(call.attrs.dtype)
        if target in HALVES:
            self.wide.add(call)
        return value if target in (*HALVES, "float32") else relay.cast(value, target)

    def _float(self, expr: Any) -> Any:
        """A value as floats."""
        if expr in self.wide or not _is_half(expr):
            return self.new[expr]
        if isinstance(expr, relay.Constant):
            return constant(constant_numpy(expr).astype(np.float32))
        return relay.cast(self.new[expr], "float32")

    def returned(self, expr: Any) -> Any:
        """A value of the type that it had."""
        if expr not in self.wide:
            return self.new[expr]
        ty = expr.checked_type
        if not isinstance(ty, relay.TupleType):
            return relay.cast(self.new[expr], str(ty.dtype))
        if isinstance(expr, relay.Tuple):
            return relay.Tuple(list(map(self.returned, expr.fields)))
        parts = (relay.TupleGetItem(self.new[expr], n) for n in range(len(ty.fields)))
        both = zip(parts, ty.fields, strict=True)
        return relay.Tuple([
            relay.cast(part, str(field.dtype)) if str(field.dtype) in HALVES else part
            for part, field in both
        ])  # fmt: skip


def is_half_weight(expr: Any) -> bool:
    """Whether it makes floats of a dense layer's weight, which its kernel does."""
    if name_of(expr) != "cast":
        return False
    return str(expr.attrs.dtype) == "float32" and _stays(expr.args[0])


def _weight(expr: Any) -> Any | None:
    """A constant of halves, transposed now where an op does it."""
    if _stays(expr):
        return expr
    is_turned = name_of(expr) == "transpose"
    if not is_turned or not _stays(children(expr)[0]):
        return None
    return constant(np.ascontiguousarray(constant_numpy(expr.args[0]).T))


def _stays(expr: Any) -> bool:
    if not isinstance(expr, relay.Constant):
        return False
    array = constant_numpy(expr)
    return str(array.dtype) in HALVES and array.ndim == 2 and array.size >= LEAST


def _of_floats(call: Any) -> Any:
    """A call's attributes, without halves."""
    told = attrs_dict(call.attrs)
    changed = {n: "float32" for n in ("dtype", "out_dtype") if str(told.get(n)) in HALVES}
    if not changed:
        return call.attrs
    return tvm.ir.make_node(call.op.attrs_type_key, **{**told, **changed})


def _is_half(expr: Any) -> bool:
    """Whether any tensor of a value is of halves."""
    ty = expr.checked_type
    fields = ty.fields if isinstance(ty, relay.TupleType) else [ty]
    return any(str(getattr(field, "dtype", "")) in HALVES for field in fields)
