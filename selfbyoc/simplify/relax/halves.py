"""Relax: halves are storage (simplify/halves.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ...graph import HALVES
from ...ir.relax import Attributes, Constant
from ...ir.relax.emit import constant
from ...tvm import constant_numpy, tvm
from ..halves import LEAST
from .exprs import is_op

_AS_THEY_ARE = ("call_", "invoke_", "memory.", "vm.", "builtin.", "selfbyoc.dequantize_groups")


def with_floats(mod: tvm.IRModule) -> tvm.IRModule:
    """The normalised module, computing in float32; itself where it has no halves."""
    main = mod["main"]
    found = _Found()
    found.visit_expr(main)
    if not found.halves or found.branches:
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    made = _Floats().visit_expr(main)
    done.update_func(done.get_global_var("main"), _returning(made, main.ret_ty))
    return relax.transform.Normalize()(done)


@relax.expr_functor.visitor
class _Found(relax.PyExprVisitor):
    """Whether any value is of halves, and whether there are branches, which are left alone."""

    def __init__(self) -> None:
        super().__init__()
        self.halves = self.branches = False

    def visit_var_binding_(self, binding: Any) -> None:
        """Of a binding's value."""
        self.halves |= any(map(_is_half, _tensors(binding.var.ty)))
        super().visit_var_binding_(binding)

    def visit_if_(self, op: Any) -> None:
        """A branch."""
        self.branches = True


@relax.expr_functor.mutator
class _Floats(relax.PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call of floats instead of halves."""
        # No super: it would infer the type of a call of both.
        given = [self.visit_expr(arg) for arg in call.args]
        name = str(getattr(call.op, "name", "")).removeprefix("relax.")
        was_half = any(_is_half(ty) for arg in call.args for ty in _tensors(arg.ty))
        if not name or name.startswith(_AS_THEY_ARE):
            both = zip(call.args, given, strict=True)
            return _like(call, [self._as_it_was(*each) for each in both], call.attrs)
        if is_op(call, "astype") and was_half:
            return self._cast(str(call.attrs.dtype), given[0])
        turns = is_op(call, "permute_dims") and isinstance(given[0], Constant)
        if turns or not was_half:  # what makes halves of floats rounds them
            return _like(call, given, call.attrs)
        args = list(map(self._float, given))
        if is_op(call, "matmul"):
            args[1] = self._weight(given[1], args[1])
        return _like(call, args, _of_floats(call))

    def _cast(self, target: str, value: Any) -> Any:
        """Of halves: floats are what they stand for."""
        value = self._float(value)
        return value if target in (*HALVES, "float32") else relax.op.astype(value, target)

    def _float(self, arg: Any) -> Any:
        """A value as floats, where it is one of halves yet."""
        if isinstance(arg, relax.Tuple):
            return relax.Tuple(list(map(self._float, arg.fields)))
        if not any(map(_is_half, _tensors(arg.ty))):
            return arg
        if isinstance(arg, Constant):
            return constant(constant_numpy(arg).astype(np.float32))
        return self.builder_.emit(relax.op.astype(arg, "float32"))

    def _weight(self, given: Any, made: Any) -> Any:
        """A dense layer's, which stays as it is: [units, in], transposed by an op."""
        weight = self.lookup_binding(given) if isinstance(given, relax.Var) else given
        if is_op(weight, "permute_dims"):
            weight = weight.args[0]
        elif isinstance(weight, Constant) and _stays(weight):
            weight = constant(np.ascontiguousarray(constant_numpy(weight).T))
        if not isinstance(weight, Constant) or not _stays(weight):
            return made
        wide = self.builder_.emit(relax.op.astype(weight, "float32"))
        return self.builder_.emit(relax.op.permute_dims(wide))

    def _as_it_was(self, before: Any, now: Any) -> Any:
        """A value for what knows halves alone; several, which a call of a PrimFunc has."""
        if isinstance(before, relax.Tuple):
            both = zip(before.fields, now.fields, strict=True)
            return relax.Tuple([self._as_it_was(*each) for each in both])
        if not isinstance(before.ty, relax.TensorType) or before.ty.dtype == now.ty.dtype:
            return now
        return self.builder_.emit(relax.op.astype(now, str(before.ty.dtype)))


def _of_floats(call: Any) -> Any:
    """A call's attributes, without halves."""
    told = {} if call.attrs is None else dict(Attributes(call.attrs))
    changed = {n: "float32" for n in ("dtype", "out_dtype") if str(told.get(n)) in HALVES}
    if not changed:
        return call.attrs
    # Of some ops, as matmul, 0.27 does not say what their attributes are.
    key = type(call.attrs).__tvm_ffi_type_info__.type_key
    return tvm.ir.attrs.make_node(key, **{**told, **changed})


def _like(call: Any, args: list[Any], attrs: Any) -> Any:
    same = attrs is call.attrs and all(a is b for a, b in zip(args, call.args, strict=True))
    return call if same else relax.Call(call.op, args, attrs, call.ty_args, call.span)


def is_half_weight(call: Any) -> bool:
    """Whether a call makes floats of a dense layer's weight, which its kernel does."""
    if not is_op(call, "astype") or call.attrs.dtype != "float32":
        return False
    return isinstance(call.args[0], Constant) and _stays(call.args[0])


def _stays(weight: Any) -> bool:
    is_large = _is_half(weight.ty) and weight.ty.ndim == 2
    return is_large and constant_numpy(weight).size >= LEAST


def _returning(func: Any, ty: Any) -> Any:
    """The function, whose results are cast to the types that it had."""
    seq, casts = func.body, list[Any]()

    def cast(value: Any, wanted: Any) -> Any:
        if isinstance(wanted, relax.TupleType):
            fields = [
                relax.TupleGetItem(value, n) if isinstance(value, relax.Var) else value.fields[n]
                for n in range(len(wanted.fields))
            ]
            return relax.Tuple([cast(*each) for each in zip(fields, wanted.fields, strict=True)])
        if not _is_half(wanted):
            return value
        var = relax.Var(f"rounded{len(casts)}", wanted)
        casts.append(relax.VarBinding(var, relax.op.astype(value, str(wanted.dtype))))
        return var

    body = cast(seq.body, ty)
    blocks = [*seq.blocks, *([relax.BindingBlock(casts)] if casts else [])]
    return relax.Function(func.params, relax.SeqExpr(blocks, body), ty, attrs=func.attrs)


def _tensors(ty: Any) -> list[Any]:
    if isinstance(ty, relax.TupleType):
        return [each for field in ty.fields for each in _tensors(field)]
    return [ty] if isinstance(ty, relax.TensorType) else []


def _is_half(ty: Any) -> bool:
    return isinstance(ty, relax.TensorType) and str(ty.dtype) in HALVES
