"""Relax: convolutions without the taps that never meet the image (partition/taps.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from .._tvm import constant_numpy
from ..ir._relax import Constant
from ..ir._relax_emit import constant
from ..ops.attrs import pair, quad
from ._relax_exprs import is_op, static_shape
from .taps import Window, kept_of, places


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
    shape, layout = static_shape(data), (str(attrs.data_layout), str(attrs.kernel_layout))
    if not shape or len(layout[0]) != 4 or len(layout[1]) != 4:
        return None
    array, at = constant_numpy(weight), places(layout[1], "HW")
    height, width = (shape[axis] for axis in places(layout[0], "HW"))
    window = Window(
        (height, width), (array.shape[at[0]], array.shape[at[1]]),
        pair(attrs.strides), pair(attrs.dilation), quad(attrs.padding),
    )  # fmt: skip
    found = kept_of(window)
    if found is None:
        return None
    for axis, taps in zip(at, found[0], strict=True):
        array = np.take(array, taps, axis)
    made = relax.op.nn.conv2d(
        data, constant(np.ascontiguousarray(array)), attrs.strides, found[1], attrs.dilation,
        attrs.groups, attrs.data_layout, attrs.kernel_layout, attrs.out_layout, attrs.out_dtype,
    )  # fmt: skip
    return relax.Call(made.op, made.args, made.attrs, span=call.span)
