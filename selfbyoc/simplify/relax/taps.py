"""Relax: convolutions without the taps that never meet the image (simplify/taps.py)."""

from __future__ import annotations

from typing import Any

from tvm import relax

from ...ir.relax import Constant
from ...ir.relax.emit import constant
from ...tvm import constant_numpy
from ..taps import without_idle_taps
from .exprs import is_op, open_shape


@relax.expr_functor.mutator
class TapsThatMeet(relax.PyExprMutator):
    """Weights that are constants lose their other taps."""

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A convolution of two axes, as it was or trimmed."""
        done = super().visit_call_(call)
        found = _trimmed(done)
        return done if found is None else found


def _trimmed(call: Any) -> Any:
    if not is_op(call, "nn.conv2d") or not isinstance(call.args[1], Constant):
        return None
    data, weight, attrs = call.args[0], call.args[1], call.attrs
    shape = [e if isinstance(e, int) else None for e in open_shape(data)]
    found = without_idle_taps(constant_numpy(weight), shape, attrs) if shape else None
    if found is None:
        return None
    made = relax.op.nn.conv2d(
        data, constant(found[0]), attrs.strides, found[1], attrs.dilation,
        attrs.groups, attrs.data_layout, attrs.kernel_layout, attrs.out_layout, attrs.out_dtype,
    )  # fmt: skip
    return relax.Call(made.op, made.args, made.attrs, span=call.span)
