"""Branches of an If as functions of Relax. TVM 0.27's frontend computes both, whichever is taken,
and what its virtual machine allocates in one branch it takes for allocated in the other one
(SIGSEGV).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from ...errors import InputError
from ...simplify.relax.exprs import STEP
from ...tvm import tir, walk
from ...tvm.types import Expr, PrimVar, Type
from .loop_calls import Functions


def same_type(place: str, names: Sequence[str], types: Sequence[Type]) -> None:
    """Raises InputError where two branches give values of different kinds by these names: a
    compiled model has one dtype and one number of axes for each.
    """
    fields = [list(ty.fields) if isinstance(ty, relax.TupleType) else [ty] for ty in types]
    for name, one, other in zip(names, *fields, strict=True):
        kinds = [(ty.ndim, str(ty.dtype)) for ty in (one, other)]
        if kinds[0] == kinds[1]:
            continue
        told = [f"{dtype} of {ndim} axes" for ndim, dtype in kinds]
        text = f"its branches give {name!r} as {' and as '.join(told)}; expected the same of both"
        raise InputError(f"{place}: {text}: give what its condition depends on a size or a value")


def branch_of(
    functions: Functions, block: relax.BindingBlock, result: Expr, inputs: Sequence[Expr]
) -> Expr:
    """A call of a function that computes a block, with what that reads; the result itself where
    there is nothing to compute. Of `inputs` it gets those that say a size which nothing else says.
    """
    if not block.bindings:
        return result
    body = relax.SeqExpr([block], result)
    read = list(relax.analysis.free_vars(body))
    missing = relax.analysis.free_symbolic_vars(relax.Function(read, body, result.ty))
    read += [x for x in inputs if not _is_in(x, read) and any(_says(x, var) for var in missing)]
    func = relax.Function(read, body, _returned(result.ty, read))
    func = relax.utils.copy_with_new_vars(func).with_attr(STEP, True)
    return relax.Call(functions.add("branch", func), read)


def _sizes(ty: Type) -> list[Expr]:
    """The sizes in a type that are no numbers."""
    found: list[Any] = []
    walk(ty, lambda node: found.append(node) if isinstance(node, tir.Var) else None)
    return found


def _says(x: Expr, var: PrimVar) -> bool:
    shape = getattr(x.ty, "shape", None)
    return isinstance(shape, relax.ShapeExpr) and any(var.same_as(e) for e in shape.values)


def _returned(ty: Type, read: Sequence[Expr]) -> Type:
    """A type without the sizes that no parameter says."""
    if isinstance(ty, relax.TupleType):
        return relax.TupleType([_returned(field, read) for field in ty.fields])
    known = [size for x in read for size in _sizes(x.ty)]
    if all(_is_in(size, known) for size in _sizes(ty)):
        return ty
    return relax.TensorType(dtype=str(ty.dtype), ndim=ty.ndim)


def _is_in(x: Expr, among: Sequence[Expr]) -> bool:
    return any(x.same_as(other) for other in among)
