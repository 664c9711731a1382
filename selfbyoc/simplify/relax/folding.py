"""Relax: what reads no input is computed once (`folding`), all of it by one function.

TVM's FoldConstant (0.27) takes one op at a time, each a build of its own, and nothing that begins
with `arange` or `full`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ...ir.relax import Constant
from ...ir.relax.emit import constant
from ...ops.vocabulary import KINDS
from ...tvm import constant_numpy, make_target, tvm
from ...tvm.as_tvm_lowers import defined
from ...tvm.types import Binding, Expr, Function, Type
from ..folding import Free, joined, or_as_it_was, size_of
from ..halves import stays
from .exprs import array_of, is_op, leaves

MOVES = {
    f"relax.{name}"
    for name in (
        "astype", "broadcast_to", "expand_dims", "flatten", "layout_transform", "permute_dims",
        "reshape", "squeeze",
    )
}  # fmt: skip
STAY = {
    f"relax.{form.name}" for kind in KINDS.values() if not kind.is_folded for form in kind.relax
}


@or_as_it_was
def fold(mod: tvm.IRModule) -> tvm.IRModule:
    """The normalised module, with constants in place of what can be computed now."""
    main = mod["main"]
    bindings = [b for block in main.body.blocks for b in block.bindings]
    free: dict[Any, Free] = {}
    for binding in bindings:
        found = _free(binding.value, free) if isinstance(binding, relax.VarBinding) else None
        if found is not None and found.fits(_bytes(binding.var.ty)):
            free[binding.var] = found
    wanted = _wanted(main, bindings, free)
    if not wanted:
        return mod
    needed = [b for b in bindings if b.var in free]
    arrays = dict(zip(wanted, _computed(needed, wanted), strict=True))
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), _Known(arrays).visit_expr(main))
    return relax.transform.DeadCodeElimination()(relax.transform.Normalize()(done))


def _free(value: Expr, free: dict[Expr, Free]) -> Free | None:
    """What is known of a value that no input reaches; None of any other."""
    if isinstance(value, relax.Call) and not _can_be_called(value):
        return None
    parts: list[Free] = []
    for leaf in leaves(value):
        if isinstance(leaf, relax.Var):
            if leaf not in free:
                return None
            parts.append(free[leaf])
        elif isinstance(leaf, Constant):
            parts.append(Free(constant_numpy(leaf).nbytes))
        elif _is_open(leaf):
            return None
    return joined(parts, isinstance(value, relax.Call) and value.op.name not in MOVES)


def _can_be_called(call: Expr) -> bool:
    """An op that TVM knows how to compute, and that gives the same each time."""
    op = call.op
    if not isinstance(op, tvm.ir.Op) or op.name in STAY or _is_weight(call):
        return False
    return op.has_attr("FLegalize") and op.has_attr("FPurity") and bool(op.get_attr("FPurity"))


def _is_weight(call: Expr) -> bool:
    """Whether it makes floats of a dense layer's halves, which its kernel does."""
    weight = array_of(call.args[0]) if is_op(call, "astype") else None
    return weight is not None and call.attrs.dtype == "float32" and stays(weight)


def _is_open(leaf: Expr) -> bool:
    """Whether it is not known yet: a shape or a number with a symbol, or something unheard of."""
    if isinstance(leaf, relax.ShapeExpr):
        return not all(hasattr(extent, "value") for extent in leaf.values)
    number = getattr(leaf, "value", None)  # TVM 0.26 has a PrimValue around it
    return not isinstance(number, (int, float, str)) and not hasattr(number, "value")


def _bytes(ty: Type) -> int | None:
    if isinstance(ty, relax.TupleType):
        parts = [_bytes(field) for field in ty.fields]
        return None if None in parts else sum(part for part in parts if part is not None)
    if not isinstance(ty, relax.TensorType) or not isinstance(ty.shape, relax.ShapeExpr):
        return None
    if not ty.dtype or not all(hasattr(extent, "value") for extent in ty.shape.values):
        return None
    return size_of([int(extent) for extent in ty.shape.values], ty.dtype)


def _wanted(main: Function, bindings: list[Binding], free: dict[Expr, Free]) -> list[Expr]:
    """The tensors that are computed now and that something else reads, in order."""
    read = {
        leaf
        for value in (main.body.body, *(b.value for b in bindings if b.var not in free))
        for leaf in leaves(value)
        if isinstance(leaf, relax.Var)
    }
    return [
        var
        for var, found in free.items()
        if var in read and found.is_computed and isinstance(var.ty, relax.TensorType)
    ]


def _computed(bindings: list[Binding], wanted: list[Expr]) -> list[np.ndarray]:
    """The values of variables, by one function without parameters."""
    builder = relax.BlockBuilder()
    new: dict[Any, Any] = {}
    with builder.function("main", []):
        with builder.dataflow():
            for binding in bindings:
                new[binding.var] = builder.emit(_renewed(binding.value, new))
            results = builder.emit_output(relax.Tuple([new[var] for var in wanted]))
        builder.emit_func_output(results)
    passes = [relax.transform.DeadCodeElimination(), relax.transform.LegalizeOps(), defined]
    mod = tvm.transform.Sequential(passes)(builder.get())
    # It runs once: quick to compile is what counts.
    built = tvm.compile(mod, target=make_target({"kind": "llvm", "opt-level": 0}))
    found = relax.VirtualMachine(built, tvm.cpu())["main"]()
    return [tensor.numpy() for tensor in found]


def _renewed(value: Expr, new: dict[Expr, Expr]) -> Expr:
    """A value over other variables."""
    if isinstance(value, relax.Call):
        args = [_renewed(arg, new) for arg in value.args]
        if is_op(value, "take") and value.attrs.mode == "fast":  # of which 0.27 warns on stderr
            return relax.op.take(*args, axis=value.attrs.axis, mode="clip")
        return relax.Call(value.op, args, value.attrs)
    if isinstance(value, relax.Tuple):
        return relax.Tuple([_renewed(field, new) for field in value.fields])
    if isinstance(value, relax.TupleGetItem):
        return relax.TupleGetItem(_renewed(value.tuple_value, new), value.index)
    return new.get(value, value)


@relax.expr_functor.mutator
class _Known(relax.PyExprMutator):
    """Constants in place of variables."""

    def __init__(self, arrays: dict[Expr, np.ndarray]) -> None:
        super().__init__()
        self.constants = {var: constant(array) for var, array in arrays.items()}

    def visit_var_(self, var: relax.Var) -> relax.Expr:
        return self.constants[var] if var in self.constants else super().visit_var_(var)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        return self.constants[var] if var in self.constants else super().visit_dataflow_var_(var)
