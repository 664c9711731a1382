"""Reductions and normalisations as te.compute: sum, mean, max, softmax, layer_norm, rms_norm,
batch_norm, lrn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..graph import OpCall
from ..tvm import dtype_of, te, tir
from ..tvm.nans import ANY_NAN
from ..tvm.types import Attr, PrimExpr
from . import mathfn as M
from .softmax import Softmax

if TYPE_CHECKING:
    from ..tvm.types import Tensor


def _const(value: float, dtype: str) -> PrimExpr:
    return tir.const(value, dtype)


def quotient_of(total: PrimExpr, count: PrimExpr) -> PrimExpr:
    """A sum over the number of its terms; of integers rounded towards zero, as TVM's own."""
    count = count.astype(dtype_of(total))
    return tir.truncdiv(total, count) if "int" in dtype_of(total) else total / count


def reduce(kind: str) -> Callable[..., Tensor]:
    """The compute of `sum`, `mean` or `max`."""

    def compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
        (x,) = ins
        axes = reduced_axes(call.attrs["axis"], len(x.shape))
        count = tir.const(math.prod(int(x.shape[a]) for a in axes), "int32")
        total = _over(x, axes, call.outputs[0].shape, "max" if kind == "max" else "sum", call)
        if kind != "mean":
            return total
        return te.compute(
            total.shape, lambda *i: quotient_of(total(*i), count), name=f"{call.name}_out"
        )

    return compute


def reduced_axes(axis: Attr, ndim: int) -> tuple[int, ...]:
    """The axes that an `axis` attribute stands for: None is all of them."""
    if axis is None or axis == ():
        return tuple(range(ndim))
    return tuple(sorted(a % ndim for a in ((axis,) if isinstance(axis, int) else axis)))


def _over(
    x: Tensor,
    axes: tuple[int, ...],
    shape: Sequence[int],
    how: str,
    call: OpCall,
    attrs: Mapping[str, int] | None = None,
) -> Tensor:
    """Reduce `x` over axes, with or without keeping them."""
    inner = {a: te.reduce_axis((0, int(x.shape[a])), name=f"r{a}") for a in axes}
    keeps = len(shape) == len(x.shape)
    combine = te.max if how == "max" else te.sum

    def element(*i: PrimExpr) -> PrimExpr:
        rest = iter(i)
        index = []
        for a in range(len(x.shape)):
            if a in inner:
                index.append(inner[a])
                if keeps:
                    next(rest)
            else:
                index.append(next(rest))
        return combine(x(*index), axis=list(inner.values()))

    return te.compute(shape, element, name=f"{call.name}_{how}", attrs=attrs)


def _drop(index: Sequence[PrimExpr], axis: int) -> tuple[PrimExpr, ...]:
    return (*index[:axis], *index[axis + 1 :])


def softmax(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """e^(x - max) over its sum along one axis."""
    (x,) = ins
    axis = call.attrs["axis"] % len(x.shape)
    kept = _drop(tuple(x.shape), axis)
    parts = Softmax(call.attrs.get("guarded", False))
    peak = _over(x, (axis,), kept, "max", call, ANY_NAN)
    power = te.compute(
        x.shape,
        lambda *i: M.exp(x(*i) - parts.subtracted(peak(*_drop(i, axis)))),
        name=f"{call.name}_exp",
    )
    total = _over(power, (axis,), kept, "sum", call)
    return te.compute(
        x.shape, lambda *i: parts.divided(power(*i), total(*_drop(i, axis))), name=call.name
    )


def layer_norm(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """Mean, then the variance around it (two passes: a one-pass variance loses float32's
    digits).
    """
    x, gamma, beta = ins
    axis = call.attrs["axis"] % len(x.shape)
    kept, count = _drop(tuple(x.shape), axis), _const(int(x.shape[axis]), dtype_of(x))
    total = _over(x, (axis,), kept, "sum", call)

    def centred(*i: PrimExpr) -> PrimExpr:
        return x(*i) - total(*_drop(i, axis)) / count

    scale = _scale(centred, x, axis, dtype_of(x), call)

    def normal(*i: PrimExpr) -> PrimExpr:
        return centred(*i) * scale(*_drop(i, axis)) * gamma(i[axis]) + beta(i[axis])

    return te.compute(x.shape, normal, name=call.name)


def rms_norm(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """x over the root of the mean of its squares; as TVM's, float16 in float32, as 256 * 256 is
    more than it holds.
    """
    x, gamma = ins
    axis, dtype = call.attrs["axis"] % len(x.shape), str(dtype_of(x))
    sums = "float32" if dtype in ("float16", "bfloat16") else dtype

    def wide(*i: PrimExpr) -> PrimExpr:
        return x(*i).astype(sums)

    scale = _scale(wide, x, axis, sums, call)

    def normal(*i: PrimExpr) -> PrimExpr:
        return (wide(*i) * scale(*_drop(i, axis)) * gamma(i[axis]).astype(sums)).astype(dtype)

    return te.compute(x.shape, normal, name=call.name)


def _scale(
    element: Callable[..., PrimExpr], x: Tensor, axis: int, dtype: str, call: OpCall
) -> Tensor:
    """1 / sqrt(mean of the squared elements + epsilon) along an axis of x."""
    kept, extent = _drop(tuple(x.shape), axis), int(x.shape[axis])
    k = te.reduce_axis((0, extent), name="k")

    def squared(*i: PrimExpr) -> PrimExpr:
        value = element(*i[:axis], k, *i[axis:])
        return te.sum(value * value, axis=k)

    spread = te.compute(kept, squared, name=f"{call.name}_var")
    one, count, epsilon = (_const(v, dtype) for v in (1.0, extent, call.attrs["epsilon"]))
    return te.compute(
        kept, lambda *i: one / te.sqrt(spread(*i) / count + epsilon), name=f"{call.name}_scale"
    )


def batch_norm(ins: Sequence[Tensor], call: OpCall) -> list[Tensor]:
    """Inference: the statistics are inputs, and pass through as outputs 1 and 2."""
    x, gamma, beta, mean, var = ins
    axis = call.attrs["axis"] % len(x.shape)
    epsilon = _const(call.attrs["epsilon"], dtype_of(x))
    scale = te.compute(
        gamma.shape, lambda c: gamma(c) / te.sqrt(var(c) + epsilon), name=f"{call.name}_scale"
    )
    shift = te.compute(
        gamma.shape, lambda c: beta(c) - mean(c) * scale(c), name=f"{call.name}_shift"
    )
    out = te.compute(x.shape, lambda *i: x(*i) * scale(i[axis]) + shift(i[axis]), name=call.name)
    return [out, _copy(mean, f"{call.name}_mean"), _copy(var, f"{call.name}_var")]


def _copy(tensor: Tensor, name: str) -> Tensor:
    return te.compute(tensor.shape, lambda *i: tensor(*i), name=name)


def global_avg_pool2d(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """The mean over the spatial axes."""
    (x,) = ins
    layout = call.attrs["layout"]
    axes = (layout.index("H"), layout.index("W"))
    count = tir.const(math.prod(int(x.shape[a]) for a in axes), "int32")
    total = _over(x, axes, call.outputs[0].shape, "sum", call)
    return te.compute(total.shape, lambda *i: quotient_of(total(*i), count), name=call.name)


def lrn(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """x / (bias + alpha * mean of x * x over neighbours along an axis) ** beta.

    The terms are written one by one; neighbours are read from the cache again. One stage, but for
    a power that is no root: its polynomials name the base about 2000 times, and TVM's passes visit
    it as often (a minute for five neighbours), so it is a stage of its own.
    """
    (x,), a = ins, call.attrs
    axis, half, dtype = a["axis"] % len(x.shape), a["size"] // 2, dtype_of(x)
    extent, nothing = int(x.shape[axis]), _const(0, dtype)

    def square(i: Sequence[PrimExpr], distance: int) -> PrimExpr:
        # The nearest element there is, and then not counted: no branch around a vector.
        at = i[axis] + distance
        near = tir.Min(tir.Max(at, 0), extent - 1) if distance else at
        value = x(*i[:axis], near, *i[axis + 1 :])
        # Not `at >= 0 and at < extent`: TVM's simplifier would take it for granted where the value
        # is read, and read before and after the image; both sides of a select are computed.
        return tir.Select(near == at, value * value, nothing) if distance else value * value

    def base(*i: PrimExpr) -> PrimExpr:
        total = square(i, 0)
        for distance in (d for d in range(-half, half + 1) if d and abs(d) < extent):
            total = total + square(i, distance)
        return _const(a["bias"], dtype) + _const(a["alpha"] / a["size"], dtype) * total

    powered = base
    if not M.by_roots(a["beta"]):
        powered = te.compute(x.shape, base, name=f"{call.name}_base")
    return te.compute(
        x.shape, lambda *i: x(*i) * M.inverse_power(powered(*i), a["beta"]), name=call.name
    )
