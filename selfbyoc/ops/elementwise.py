"""Ops on elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ComputeError
from ..graph import OpCall
from ..tvm import dtype_of, te, tir
from ..tvm.types import Attrs
from . import mathfn as M
from .attrs import none, only
from .kind import (
    BROADCASTS,
    Array,
    Form,
    OpKind,
    along,
    elementwise,
    form,
    in_both,
    pure,
    with_attrs,
)
from .rounded import round_away, round_even

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr, Tensor


erf = np.vectorize(math.erf, otypes=[np.float64])


def unary(
    name: str, doc: str, compute: Callable[..., PrimExpr], numpy: Callable[..., Array], **more: Any
) -> OpKind:
    """An op of one value: its words, its expression, and what it means; `more` are its forms."""
    told = {"fuses": "elemwise", "doc": doc, **(more or in_both(name))}
    return OpKind(name, elementwise(compute), pure(numpy), **told)


def _binary(
    name: str,
    doc: str,
    compute: Callable[..., PrimExpr],
    numpy: Callable[..., Array],
    *,
    commutes: bool = False,
) -> OpKind:
    return OpKind(
        name,
        elementwise(compute),
        pure(numpy),
        inputs=2,
        fuses=BROADCASTS,
        is_commutative=commutes,
        doc=f"{doc}, broadcast as in NumPy.",
        **in_both(name),
    )


def _clip(x: PrimExpr, attrs: Attrs) -> PrimExpr:
    dtype = str(dtype_of(x))
    low, high = (tir.const(bound, dtype) for bound in bounds(attrs, dtype))
    return M.clamp(x, low, high)


def bounds(attrs: Attrs, dtype: str) -> list[float | int]:
    """The limits of a clip in a dtype: integers of 8 bits may come with 300."""
    bounds = [attrs["a_min"], attrs["a_max"]]
    if not np.issubdtype(dtype, np.integer):
        return bounds
    lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    return [lowest if b <= lowest else highest if b >= highest else int(b) for b in bounds]


def _numpy_clip(ins: Sequence[Array], call: OpCall) -> Array:
    # As TVM: where the limits are in the wrong order, the lower one counts.
    low, high = bounds(call.attrs, str(ins[0].dtype))
    dtype = ins[0].dtype.type
    return np.maximum(np.minimum(ins[0], dtype(high)), dtype(low))


def _round(x: PrimExpr, attrs: Attrs) -> PrimExpr:
    """As the graph's own op rounds halves: Relax to even, Relay away from zero."""
    return round_even(x) if attrs["ties"] == "even" else round_away(x)


def _numpy_round(ins: Sequence[Array], call: OpCall) -> Array:
    """NumPy has no function for halves away from zero."""
    (x,) = ins
    if call.attrs["ties"] == "even":
        return np.round(x)
    return np.trunc(x + np.copysign(np.nextafter(0.5, 0), x))


def _numpy_cast(ins: Sequence[Array], call: OpCall) -> Array:
    dtype = np.dtype(call.attrs["dtype"])
    return ins[0].astype(np.float64 if np.issubdtype(dtype, np.floating) else dtype)


def quotient(a: Array, b: Array) -> Array:
    """a / b; of integers rounded towards zero, and 0 by zero, as kernels have it."""
    if not np.issubdtype(np.result_type(a, b), np.integer):
        return np.divide(a, b)
    with np.errstate(divide="ignore", over="ignore"):  # the least integer by -1 is itself
        below = np.floor_divide(a, b)
        return below + ((below * b != a) & (b != 0) & ((a < 0) != (b < 0)))


def _bias_add(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    x, bias = ins
    axis = call.attrs["axis"] % len(x.shape)
    wanted, found = call.inputs[0].shape[axis], call.inputs[1].shape
    if len(found) != 1 or (None not in (*found, wanted) and found[0] != wanted):
        text = f"a bias of {list(found)} along axis {axis} of {call.inputs[0].type}"
        raise ComputeError(f"{call.name}: {text}; expected [{wanted}]")
    return te.compute(x.shape, lambda *i: x(*i) + bias(i[axis]), name=call.name)


def _numpy_bias_add(ins: Sequence[Array], call: OpCall) -> Array:
    return ins[0] + along(ins[1], call.attrs["axis"], ins[0].ndim)


def _to_dtype(raw: Attrs) -> dict[str, str]:
    return {"dtype": str(raw["dtype"])}


KINDS = (
    unary("abs", "|x|.", tir.abs, np.abs),
    unary(
        "erf",
        "The error function, 2 / sqrt(pi) * integral of e ** (-t ** 2) from 0 to x.",
        M.erf,
        erf,
    ),
    unary("exp", "e ** x.", M.exp, np.exp),
    unary("log", "The natural logarithm of x.", M.log, np.log),
    unary("negative", "-x.", lambda a: tir.const(0, dtype_of(a)) - a, np.negative),
    unary("rsqrt", "1 / sqrt(x).", te.rsqrt, lambda x: 1 / np.sqrt(x)),
    unary("sigmoid", "1 / (1 + e ** -x).", M.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    unary("sqrt", "The square root of x.", te.sqrt, np.sqrt),
    unary("tanh", "The hyperbolic tangent of x.", M.tanh, np.tanh),
    _binary("add", "x + y", lambda a, b: a + b, np.add, commutes=True),
    _binary("divide", "x / y; of integers rounded towards zero", tir.div, quotient),
    _binary("left_shift", "x << y, of integers", lambda a, b: a << b, np.left_shift),
    _binary("maximum", "The larger of x and y", tir.Max, np.maximum, commutes=True),
    _binary("minimum", "The smaller of x and y", tir.Min, np.minimum, commutes=True),
    _binary("multiply", "x * y", lambda a, b: a * b, np.multiply, commutes=True),
    _binary("power", "x ** y", M.power, np.power),
    _binary(
        "right_shift", "x >> y, of integers, with the sign", lambda a, b: a >> b, np.right_shift
    ),
    _binary("subtract", "x - y", lambda a, b: a - b, np.subtract),
    OpKind(
        "bias_add",
        _bias_add,
        _numpy_bias_add,
        inputs=2,
        attrs={"axis": 1},
        relay=form("nn.bias_add", only("axis")),
        fuses=BROADCASTS,
        takes="x bias",
        doc="x + bias, with the vector `bias` along one axis of x.",
        spelled={"relax": "add(x, bias), reshaped where the axis is not the last"},
    ),
    OpKind(
        "cast",
        with_attrs(lambda x, a: x.astype(a["dtype"])),
        _numpy_cast,
        read_attrs=("dtype",),
        relay=form("cast", _to_dtype),
        relax=form("astype", _to_dtype),
        fuses="elemwise",
        takes="x",
        doc="x in another dtype; to an integer, the fraction is cut off.",
    ),
    OpKind(
        "clip",
        with_attrs(_clip),
        _numpy_clip,
        attrs={"a_min": 0.0, "a_max": 6.0},
        relay=form("clip", only("a_min", "a_max")),
        relax=(Form("clip", none), Form("nn.relu6", lambda raw: {"a_min": 0.0, "a_max": 6.0})),
        fuses="elemwise",
        takes="x",
        doc="min(max(x, a_min), a_max).",
    ),
    OpKind(
        "round",
        with_attrs(_round),
        _numpy_round,
        read_attrs=("ties",),
        relay=form("round", lambda raw: {"ties": "away"}),
        relax=form("round", lambda raw: {"ties": "even"}),
        fuses="elemwise",
        takes="x",
        doc="The nearest whole number.",
    ),
)
