"""Relax: weights of few bits (simplify/few_bits.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ...ir.relax.emit import constant
from ...ir.relax.register import call_of
from ...tvm import tvm
from ..few_bits import in_groups, takes
from .exprs import is_op
from .levels import array_of


@relax.expr_functor.mutator
class _FewBits(relax.PyExprMutator):
    def __init__(self, bits: int, group: int) -> None:
        super().__init__()
        self.attrs = {"bits": bits, "group": group}

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A product with a weight of levels."""
        done = super().visit_call_(call)
        if not is_op(done, "matmul") or done.args[0].ty.ndim < 2:
            return done
        weight = self._weight(done.args[1])
        if weight is None or not takes(weight):
            return done
        made = [constant(array) for array in in_groups(weight, **self.attrs)]
        floats = self.builder_.emit(
            call_of("selfbyoc.dequantize_groups", made, self.attrs, is_list=False)
        )
        turned = self.builder_.emit(relax.op.permute_dims(floats))
        return relax.op.matmul(done.args[0], turned, done.attrs.out_dtype or None)

    def _weight(self, arg: Any) -> np.ndarray | None:
        """[units, depth] of a constant."""
        made = self.lookup_binding(arg) if isinstance(arg, relax.Var) else arg
        if is_op(made, "permute_dims") and made.attrs.axes in (None, (1, 0), [1, 0]):
            found: np.ndarray | None = array_of(made.args[0])
            return found
        array = array_of(made)
        return None if array is None else np.ascontiguousarray(array.T)


def with_few_bits(mod: tvm.IRModule, bits: int, group: int) -> tvm.IRModule:
    """The prepared module; constant weights of its dense layers are levels."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), _FewBits(bits, group).visit_expr(mod["main"]))
    return relax.transform.CanonicalizeBindings()(done)
