"""Relax: a batch norm outside composites, its statistics constant, is one product and one sum.

TVM 0.27 lowers it as written, with a square root and four reshaped vectors in each call:
concatenate, batch norm and SiLU of 1200x2x2 take 37 us so (Zen 5, Nov 2026).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ...ir.relax import Constant
from ...ir.relax.emit import constant
from ...tvm import constant_numpy, tvm
from ...tvm.types import AttrsNode, Expr

_DTYPES = ("float32", "float64")  # in less the shift would lose what cancels


@tvm.transform.module_pass(opt_level=0, name="NormsAreScales")
def norms_are_scales(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """The pass."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, func in mod.functions.items():
        if isinstance(func, relax.Function):
            done.update_func(gv, _NormsAreScales().visit_expr(func))
    return relax.transform.DeadCodeElimination()(done)


@relax.expr_functor.mutator
class _NormsAreScales(relax.PyExprMutator):
    def visit_tuple_getitem_(self, item: relax.TupleGetItem) -> relax.Expr:
        taken = super().visit_tuple_getitem_(item)
        is_bound = isinstance(taken.tuple_value, relax.Var)
        norm: Any = self.lookup_binding(taken.tuple_value) if is_bound else None
        if taken.index != 0 or not _has_constants(norm):
            return taken
        x, *parts = norm.args
        scale, shift = _scale_and_shift(norm.attrs, *map(constant_numpy, parts))
        shape = [1] * x.ty.ndim
        shape[int(norm.attrs.axis)] = scale.size
        dtype = str(x.ty.dtype)
        factor, term = (constant(a.astype(dtype).reshape(shape)) for a in (scale, shift))
        return relax.op.add(self.builder_.emit(relax.op.multiply(x, factor)), term)


def _has_constants(norm: Expr | None) -> bool:
    """A batch norm at inference, with nothing but its data computed."""
    if not isinstance(norm, relax.Call) or getattr(norm.op, "name", "") != "relax.nn.batch_norm":
        return False
    data, *parts = norm.args
    constants = all(isinstance(part, Constant) for part in parts)
    return constants and not norm.attrs.training and str(data.ty.dtype) in _DTYPES


def _scale_and_shift(
    attrs: AttrsNode, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """x * scale + shift, in float64."""
    scale = 1 / np.sqrt(variance.astype("float64") + float(attrs.epsilon))
    if attrs.scale:
        scale = scale * gamma
    shift = -mean * scale
    return scale, shift + beta if attrs.center else shift
