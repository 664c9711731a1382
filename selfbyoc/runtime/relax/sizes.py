"""Relax: sizes that a PrimFunc reads off its buffers. Where none of them has `batch` for an extent
and one has `batch * 12`, LegalizeOps (0.27) hands `batch` to the function as a number; a schedule
for all sizes is learnt of what buffers have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm_ffi
from tvm import relax

from ...ir.relax.symbols import text_of
from ...tvm import Analyzer, param_buffers, structural_equal, tir, tvm
from ...tvm.rewrite import substitute, variables_in
from ...tvm.types import Expr, Function, PrimExpr, PrimFunc


@tvm.transform.module_pass(opt_level=0, name="SizesOfBuffers")
def sizes_of_buffers(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """No number is handed to a PrimFunc that its buffers' extents tell: one that occurs in nothing
    else, that is the extent of a result, or a part of a sum, `past` of `past + n`. The new sizes
    have the extents' texts for names, which errors say.
    """
    new = {gv: made for gv, func in mod.functions.items() if (made := _of_buffers(func))}
    if not new:
        return mod
    rest = {gv: func for gv, func in mod.functions.items() if gv not in new}
    builder = relax.BlockBuilder(tvm.IRModule(rest))
    # Fresh global variables: the old ones keep the type of a function with numbers.
    fresh = {gv: builder.add_func(func, gv.name_hint) for gv, func in new.items()}
    done = builder.get()
    for gv, func in rest.items():
        if isinstance(func, relax.Function):
            done.update_func(gv, _Calls(fresh).visit_expr(func))
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return done


def _of_buffers(func: Function) -> PrimFunc | None:
    """The function without parameters that are numbers; None where it has none, or needs one."""
    numbers = [p for p in func.params if _is_number(p)] if isinstance(func, tir.PrimFunc) else []
    if not numbers:
        return None
    extents = [e for b in param_buffers(func) for e in getattr(b, "shape", None) or ()]
    told = {extent for extent in extents if isinstance(extent, tir.Var)}  # of a result alone
    numbers = [number for number in numbers if number not in told]
    new: list[tuple[Any, Any]] = []
    for extent in extents:
        is_new = not any(structural_equal(extent, other) for other, _ in new)
        if is_new and extent not in told and variables_in(extent) & set(numbers):
            new.append((extent, tir.Var(text_of(extent), "int64")))

    def changed(node: PrimExpr) -> PrimExpr:
        return next((var for extent, var in new if structural_equal(node, extent)), node)

    kinds = {type(extent) for extent, _ in new}
    done = tvm_ffi.structural_map(func, tuple((kind, changed) for kind in kinds))
    rest = [param for param in done.params if not _is_number(param)]
    done = substitute(
        tir.PrimFunc(rest, done.body, done.ret_type, done.attrs), _solved(numbers, new)
    )
    left: set[Any] = set()

    def seen(var: Expr) -> Expr:
        left.add(var)
        return var

    tvm_ffi.structural_map(done, ((tvm.ir.Var, seen),))
    return None if left & set(numbers) else done


def _solved(numbers: Sequence[Expr], new: Sequence[tuple[Expr, Expr]]) -> dict[Expr, PrimExpr]:
    """Numbers as what is left of a sum that is an extent: `past` of `past + n` is that - n."""
    found: dict[Any, Any] = {}
    for number in numbers:
        for extent, var in new:
            rest = Analyzer().simplify(extent - number)
            if number not in found and not variables_in(rest) & set(numbers):
                found[number] = var - rest
    return found


def _is_number(expr: Expr) -> bool:
    return isinstance(getattr(expr, "ty", None), tvm.ir.PrimType)


@relax.expr_functor.mutator
class _Calls(relax.PyExprMutator):
    """Calls of the new functions, without the numbers."""

    def __init__(self, fresh: Mapping[Expr, Expr]) -> None:
        super().__init__()
        self.fresh = fresh

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if getattr(call.op, "name", "") != "relax.call_tir" or call.args[0] not in self.fresh:
            return super().visit_call_(call)
        gv, given = call.args
        kept = [arg for arg in given.fields if not _is_number(arg)]
        return relax.Call(call.op, [self.fresh[gv], relax.Tuple(kept)], call.attrs, call.ty_args)
