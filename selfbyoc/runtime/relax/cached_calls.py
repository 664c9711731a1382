"""Relax: what the virtual machine makes for each call of a kernel is made once. TVM 0.27 makes a
shape for each tensor that it allocates or reshapes, and a tensor for each use of a memory: 90 and
90 of them in six layers of an open length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax

from ...tvm import structural_equal, tvm
from ...tvm.as_tvm_lowers import without_new_traps
from ...tvm.types import Binding, Expr

MAKE_SHAPE, VIEW = "vm.builtin.make_shape", "vm.builtin.reshape"


def vm_pipeline() -> tvm.transform.Pass:
    """TVM's default pipeline, each tensor of a memory and each shape made once."""
    passes = relax.transform
    return tvm.transform.Sequential(
        [
            relax.backend.DispatchSampling(),
            relax.backend.DispatchSortScan(),
            passes.LegalizeOps(),
            passes.RewriteDataflowReshape(),
            passes.ToNonDataflow(),
            passes.RemovePurityChecking(),
            passes.CallTIRRewrite(),
            passes.StaticPlanBlockMemory(),
            passes.LowerAllocTensor(),
            _once(_is_tensor),  # before it is known where the last use of each is
            passes.KillAfterLastUse(),
            passes.LowerRuntimeBuiltin(),
            _sizes_computed,
            _once(_is_shape),
            passes.AttachGlobalSymbol(),
        ]
    )


@tvm.transform.module_pass(opt_level=0, name="SizesComputed")
def _sizes_computed(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """Sizes and numbers made of others by functions of their own: they divide, too."""
    before = {gv.name_hint for gv in mod.get_global_vars()}
    passes = [relax.transform.ComputePrimValue(), relax.transform.VMShapeLower()]
    return without_new_traps(tvm.transform.Sequential(passes)(mod), before)


def _once(is_one: Callable[[Expr], bool]) -> tvm.transform.Pass:
    @tvm.transform.module_pass(opt_level=0, name="MadeOnce")
    def made_once(mod: tvm.IRModule, _: object) -> tvm.IRModule:
        done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
        for gv, func in mod.functions.items():
            if isinstance(func, relax.Function):
                done.update_func(gv, _Once(is_one).visit_expr(func))
        return done

    return made_once


@relax.expr_functor.mutator
class _Once(relax.PyExprMutator):
    """Each sequence by itself: what a branch makes, nobody has who takes the other one."""

    def __init__(self, is_one: Callable[[Expr], bool]) -> None:
        super().__init__()
        self.is_one = is_one
        self.made: list[dict[str, list[tuple[Any, Any]]]] = []

    def visit_seq_expr_(self, seq: Expr) -> Expr:
        """A sequence, with values of its own."""
        self.made.append({})
        done = super().visit_seq_expr_(seq)
        self.made.pop()
        return done

    def visit_var_binding_(self, binding: Binding) -> None:
        """A binding; none of a value that there is, nor of another name."""
        value = binding.value
        if isinstance(value, relax.Var) and structural_equal(value.ty, binding.var.ty):
            self.set_var_remap(binding.var, self.visit_expr(value))
            return
        if not self.is_one(value):
            super().visit_var_binding_(binding)
            return
        value = self.visit_expr(value)
        alike = self.made[-1].setdefault(str(value), [])  # extents of one name may differ
        known = next((var for other, var in alike if structural_equal(value, other)), None)
        if known is None:
            super().visit_var_binding_(binding)
            alike.append((value, self.visit_expr(binding.var)))
        else:
            self.set_var_remap(binding.var, known)


def _is_shape(value: Expr) -> bool:
    return _called(value) == MAKE_SHAPE


def _is_tensor(value: Expr) -> bool:
    """Of a memory, or of another tensor's."""
    return _called(value) in ("relax.memory.alloc_tensor", "relax.reshape", VIEW)


def _called(value: Expr) -> str:
    op = value.op if isinstance(value, relax.Call) else None
    return str(getattr(op, "global_symbol", getattr(op, "name", "")))
