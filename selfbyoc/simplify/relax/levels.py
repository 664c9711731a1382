"""Relax: levels as kernels read them (simplify/levels.py)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from tvm import relax

from ...ir.relax import Constant
from ...ir.relax.emit import constant
from ...ops.few_bits import dequantised_groups
from ...tvm import constant_numpy, tvm
from ..levels import MOVES as NAMES
from ..levels import (
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
from .exprs import is_op, static_shape
from .folding import fold
from .halves import is_half_weight

MOVES = [f"relax.{name}" for name in NAMES]


@relax.expr_functor.mutator
class LevelsAsRead(relax.PyExprMutator):
    """Each reader has its own dequantize; moves are of levels; zero points are numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[Any] = set()  # the dequantised values that somebody reads
        self.shared: dict[Any, Any] = {}  # and what their elementwise readers have
        self._rewrites = {
            "relax.quantize": self._known, "relax.dequantize": self._constant,
            "relax.matmul": self._by_units, **dict.fromkeys(MOVES, self._moved),
        }  # fmt: skip

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call over its own dequantised values, or of levels instead."""
        done = super().visit_call_(call)
        rewrite = self._rewrites.get(getattr(done.op, "name", ""))
        made = None if rewrite is None else rewrite(done)
        done = done if made is None else made
        if not isinstance(done, relax.Call):
            return done
        if is_op(done, "quantize") or is_op(done, "dequantize"):
            done = _with_number(done)
        done = self._unheld(done)
        beside = [isinstance(arg, Constant) for arg in done.args]
        own = self._shared if shares(getattr(done.op, "name", ""), beside) else self._own
        args = [own(arg) for arg in done.args]
        if all(new is old for new, old in zip(args, done.args, strict=True)):
            return done
        return relax.Call(done.op, args, done.attrs, done.ty_args, done.span)

    def _shared(self, arg: Any) -> Any:
        made = self._bound(arg)
        if not is_op(made, "dequantize"):
            return arg
        key = made_of(made.args[0], list(map(array_of, made.args[1:]))) or arg
        if key not in self.shared:
            self.shared[key] = self._own(arg)
        return self.shared[key]

    def _own(self, arg: Any) -> Any:
        if isinstance(arg, relax.Tuple):
            fields = [self._own(field) for field in arg.fields]
            same = all(new is old for new, old in zip(fields, arg.fields, strict=True))
            return arg if same else relax.Tuple(fields)
        made = self._bound(arg)
        if not is_op(made, "dequantize"):
            return arg
        if arg not in self.read:
            self.read.add(arg)
            return arg
        return self.builder_.emit(relax.Call(made.op, made.args, made.attrs))

    def _bound(self, arg: Any) -> Any:
        return self.lookup_binding(arg) if isinstance(arg, relax.Var) else None

    def _known(self, call: Any) -> Any | None:
        """A quantize of what was just dequantised alike: the levels that it was made of. One of
        what was moved, or joined: that, of levels.
        """
        before = self._bound(call.args[0])
        if getattr(getattr(before, "op", None), "name", "") in (*MOVES, "relax.concat"):
            return self._earlier(call, before)
        if not is_op(before, "dequantize") or before.attrs.out_dtype != "float32":
            return None  # fewer bits might give a neighbour
        if before.args[0].ty.dtype != call.attrs.out_dtype:
            return None
        pairs = zip(map(array_of, before.args[1:]), map(array_of, call.args[1:]), strict=True)
        return before.args[0] if alike(pairs) else None

    def _earlier(self, call: Any, before: Any) -> Any | None:
        scale = array_of(call.args[1])
        if scale is None or scale.size != 1 or scale.flat[0] <= 0 or not size_one(call.args[2]):
            return None
        moved = before.args[0]
        if not is_op(before, "concat"):
            return relax.Call(
                before.op, [self._quantized(call, moved), *list(before.args)[1:]], before.attrs
            )
        parts = self.lookup_binding(moved) if isinstance(moved, relax.Var) else moved
        if not isinstance(parts, relax.Tuple):
            return None
        levels = [self._quantized(call, part) for part in parts.fields]
        return relax.Call(before.op, [relax.Tuple(levels)], before.attrs)

    def _quantized(self, call: Any, value: Any) -> Any:
        """What a quantize makes of another value."""
        made = relax.Call(call.op, [value, *list(call.args)[1:]], call.attrs)
        known = self._known(self.builder_.normalize(made))
        return self.builder_.emit(made if known is None else known)

    def _unheld(self, call: Any) -> Any:
        """A convolution, of floats that ops make where its padding could not hold a zero point."""
        made: Any = self._bound(call.args[0]) if pads(getattr(call.op, "name", "")) else None
        if not is_op(made, "dequantize"):
            return call
        levels, scale, zero = made.args
        if is_level(array_of(zero), str(zero.ty.dtype), str(levels.ty.dtype)):
            return call
        scale, zero = (self._along(factor, made) for factor in (scale, zero))
        wide = (self.builder_.emit(relax.op.astype(value, "int32")) for value in (levels, zero))
        centred = self.builder_.emit(relax.op.subtract(*wide))
        floats = self.builder_.emit(relax.op.astype(centred, "float32"))
        floats = self.builder_.emit(relax.op.multiply(floats, scale))
        image = self.builder_.emit(relax.op.astype(floats, made.attrs.out_dtype))
        return relax.Call(call.op, [image, *call.args[1:]], call.attrs, call.ty_args, call.span)

    def _along(self, factor: Any, call: Any) -> Any:
        """One number, or those of the call's axis, beside all others."""
        axis, behind = call.attrs.axis, call.args[0].ty.ndim
        shape = [] if size_one(factor) else [-1, *[1] * ((-1 - axis) % behind)]
        return self.builder_.emit(relax.op.reshape(factor, shape))

    def _constant(self, call: Any) -> Any | None:
        """Constant levels as kernels take them: a bias as floats, a weight from its middle."""
        arrays = [array_of(arg) for arg in call.args]
        if any(array is None for array in arrays) or call.attrs.out_dtype != "float32":
            return None
        levels, _, zero = arrays
        if not stays(levels):
            return constant(dequantised(arrays, call.attrs.axis))
        if is_middle(zero, str(levels.dtype)):
            return None
        moved = around_zero(levels, zero, call.attrs.axis)
        return None if moved is None else relax.op.dequantize(
            constant(moved), call.args[1], constant(np.zeros((), "int8")), call.attrs.axis,
            "float32",
        )  # fmt: skip

    def _moved(self, call: Any) -> Any | None:
        """A move of dequantised levels as one of the levels, dequantised after it."""
        before = self._bound(call.args[0])
        if not is_op(before, "dequantize") or isinstance(before.args[0], Constant):
            return None  # a weight's is read as part of the product
        scale = array_of(before.args[1])
        if scale is None or scale.size != 1 or scale.flat[0] <= 0 or not size_one(before.args[2]):
            return None
        moved = relax.Call(call.op, [before.args[0], *list(call.args)[1:]], call.attrs)
        return relax.op.dequantize(
            self.builder_.emit(moved), *before.args[1:], out_dtype=before.attrs.out_dtype
        )

    def _by_units(self, call: Any) -> Any | None:
        """x @ dequantize(w) as a dense layer has it: [units, in], transposed by an op."""
        x, weight = call.args
        made = self._bound(weight)
        array = array_of(made.args[0]) if is_op(made, "dequantize") else None
        if array is None or array.ndim != 2:
            return None
        axis = 1 - made.attrs.axis % 2
        turned = relax.op.dequantize(
            constant(np.ascontiguousarray(array.T)), *made.args[1:], axis, made.attrs.out_dtype
        )
        weight = self.builder_.emit(relax.op.permute_dims(self.builder_.emit(turned)))
        return relax.op.matmul(x, weight, call.attrs.out_dtype)


def with_float_weights(mod: tvm.IRModule, taken: Collection[Any]) -> tvm.IRModule:
    """A prepared module whose constant levels are floats, but for those that are taken."""
    mutator = _FloatWeights(taken)
    main = mutator.visit_expr(mod["main"])
    if not mutator.changed:
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), main)
    return fold(relax.transform.CanonicalizeBindings()(done))


@relax.expr_functor.mutator
class _FloatWeights(relax.PyExprMutator):
    """Constant levels that no kernel takes as floats: nobody dequantises them in each call."""

    def __init__(self, taken: Collection[Any]) -> None:
        super().__init__()
        self.taken, self.changed = taken, False

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call; a constant instead of a dequantize of one."""
        arrays = [] if call in self.taken else [array_of(arg) for arg in call.args]
        if not arrays or any(array is None for array in arrays):
            return super().visit_call_(call)
        found = _known_floats(call, arrays)
        if found is None:
            return super().visit_call_(call)
        self.changed = True
        return constant(found.astype("float32"))


def _known_floats(call: Any, arrays: list[Any]) -> Any | None:
    """What a call makes of constant levels, or of halves."""
    if is_op(call, "dequantize") and call.attrs.out_dtype == "float32":
        return dequantised(arrays, call.attrs.axis)
    if is_op(call, "selfbyoc.dequantize_groups"):
        return dequantised_groups(arrays, int(call.attrs["bits"]), int(call.attrs["group"]))
    return arrays[0] if is_half_weight(call) else None


def size_one(expr: Any) -> bool:
    """Whether it has one element."""
    return expr.ty.ndim == 0 or set(static_shape(expr)) == {1}


def array_of(expr: Any) -> Any:
    """What a constant holds; None for any other."""
    return constant_numpy(expr) if isinstance(expr, Constant) else None


def _with_number(call: Any) -> Any:
    array = array_of(call.args[2])
    number = None if array is None else one_number(array)
    if number is None:
        return call
    args = [*list(call.args)[:2], constant(np.asarray(number))]
    return relax.Call(call.op, args, call.attrs, call.ty_args, call.span)
