"""Rules of canonicalisation: layer and RMS normalisation, which importers take apart.

Relay's ONNX importer always does, models exported before ONNX 17 are written so, and PyTorch's
models write RMS norm as they please: few call `torch.nn.RMSNorm`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...graph import OpCall, Value
from .identity import is_taken_in
from .rewriter import Rewrite, Rewriter, absorb, either_order, is_scalar


@dataclass(frozen=True)
class _Normal:
    """value / sqrt(spread + epsilon), by these ops."""

    value: Value
    spread: Value
    epsilon: float
    ops: tuple[OpCall, ...]


def layer_norm(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis."""
    if call.kind != "add":
        return None
    for scaled, beta in either_order(call):
        product = rw.producer(scaled, "multiply")
        for normal, gamma in either_order(product) if product else []:
            found = _of_centred(rw, normal)
            if found is None or product is None:
                continue
            is_affine = all(
                v.shape == found.value.shape[-1:] and not rw.producer(v) for v in (gamma, beta)
            )
            if is_affine:
                return _finish(rw, call, "layer_norm", found, (gamma, beta), product)
    return None


def rms_norm(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """x / sqrt(mean of x * x + epsilon) * gamma over the last axis; a layer norm has one inside."""
    if call.kind != "multiply" or call.outputs[0].dtype != "float32":
        return None
    for normal, gamma in either_order(call):
        for found in _normalised(rw, normal):
            squares = _mean_of_squares(rw, found.spread, found.value)
            if squares and gamma.shape == found.value.shape[-1:]:
                if any(layer_norm(rw, user) for user in rw.graph.users(call.outputs[0])):
                    return None
                if is_taken_in(rw, call):  # the addition behind it is seen then
                    return None
                return _finish(rw, call, "rms_norm", found, (gamma,), *squares)
    return None


def _finish(
    rw: Rewriter,
    call: OpCall,
    kind: str,
    found: _Normal,
    affine: tuple[Value, ...],
    *more: OpCall,
) -> Rewrite | None:
    """The norm in the place of its last op, unless somebody else reads what it computes."""
    x = found.value
    gone = [op for op in rw.graph.ops if any(op is g for g in (*found.ops, *more))]
    reads_inside = any(rw.producer(v) is op for v in affine for op in gone)
    if not x.is_static or reads_inside or not _only_inside(rw, gone, call):
        return None
    attrs = {"axis": x.ndim - 1, "epsilon": found.epsilon}
    return [absorb(call, gone, kind=kind, inputs=(x, *affine), attrs=attrs)], gone


def _normalised(rw: Rewriter, value: Value) -> Iterator[_Normal]:
    """Every way to read a value as x / sqrt(spread + epsilon), or x times its reciprocal."""
    for x, ops in _scaled(rw, value):
        plus = rw.producer(ops[-1].inputs[0], "add")
        for spread, epsilon in either_order(plus) if plus else []:
            if plus is not None and epsilon.scalar is not None:
                yield _Normal(x, spread, float(epsilon.scalar), (*ops, plus))


def _scaled(rw: Rewriter, value: Value) -> Iterator[tuple[Value, list[OpCall]]]:
    """x, and the ops of its division by a root; the last one reads what the root is of."""
    call = rw.producer(value)
    if call is not None and call.kind == "divide":
        root = rw.producer(call.inputs[1], "sqrt")
        if root is not None:
            yield call.inputs[0], [call, root]
    if call is not None and call.kind == "multiply":
        for x, factor in either_order(call):
            ops = _reciprocal_root(rw, factor)
            if ops:
                yield x, [call, *ops]


def _reciprocal_root(rw: Rewriter, value: Value) -> list[OpCall]:
    """The ops of rsqrt(s), s ** -0.5 or 1 / sqrt(s); none if it is none of these."""
    call = rw.producer(value)
    if call is None:
        return []
    if call.kind == "rsqrt" or (call.kind == "power" and is_scalar(call.inputs[1], -0.5)):
        return [call]
    is_inverse = call.kind == "divide" and is_scalar(call.inputs[0], 1.0)
    root = rw.producer(call.inputs[1], "sqrt") if is_inverse else None
    return [] if root is None else [call, root]


def _of_centred(rw: Rewriter, value: Value) -> _Normal | None:
    """The same of x - mean, with the variance as the spread: the norm of x, and all of its ops."""
    for found in _normalised(rw, value):
        minus = rw.producer(found.value, "subtract")
        if minus is None:
            continue
        x, mean = minus.inputs
        average = rw.producer(mean, "mean")
        variance = _variance(rw, found.spread, x, found.value, mean)
        if average is None or average.inputs[0] is not x or not _over_rows(average, x):
            continue
        if variance:
            return _Normal(x, mean, found.epsilon, (*found.ops, minus, average, *variance))
    return None


def _variance(
    rw: Rewriter, value: Value, x: Value, centred: Value, mean: Value
) -> tuple[OpCall, ...]:
    """The ops of a variance: the mean of the squares of what is centred, or Relay's own op."""
    call = rw.producer(value, "variance")
    if call is None:
        return _mean_of_squares(rw, value, centred)
    x_and_mean = [value for value in call.inputs] == [x, mean]  # Relax's reads x alone
    of_x = x_and_mean and not call.attrs["unbiased"]
    return (call,) if of_x and _over_rows(call, x) else ()


def _mean_of_squares(rw: Rewriter, value: Value, x: Value) -> tuple[OpCall, ...]:
    """The ops of the mean of x * x over rows; none if it is something else."""
    mean = rw.producer(value, "mean")
    square = rw.producer(mean.inputs[0]) if mean is not None and _over_rows(mean, x) else None
    if mean is None or square is None or square.kind not in ("power", "multiply"):
        return ()
    base, other = square.inputs
    is_square = is_scalar(other, 2.0) if square.kind == "power" else other is x
    return (mean, square) if base is x and is_square else ()


def _over_rows(call: OpCall, x: Value) -> bool:
    """Whether the reduction is over the last axis, which it keeps."""
    axis = call.attrs.get("axis")
    axes = (axis,) if isinstance(axis, int) else axis or ()
    is_kept = bool(call.attrs.get("keepdims")) and x.ndim > 0
    return is_kept and [a % x.ndim for a in axes] == [x.ndim - 1]


def _only_inside(rw: Rewriter, gone: list[OpCall], root: OpCall) -> bool:
    """Whether nothing but the root reads what the ops on the way compute."""
    inside = set((*gone, root))
    between = [v for op in gone for v in op.outputs]
    read_inside = all(u in inside for v in between for u in rw.graph.users(v))
    return read_inside and not any(rw.graph.is_output(v) for v in between)
