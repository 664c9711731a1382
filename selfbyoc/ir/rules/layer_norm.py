"""Rule of canonicalisation: layer normalisation, which importers take apart.

Relay's ONNX importer always does, and models exported before ONNX 17 are written so.
"""

from __future__ import annotations

from ...graph import OpCall, Value
from .rewriter import Rewrite, Rewriter, absorb, either_order, is_scalar


def layer_norm(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis."""
    if call.kind != "add" or not call.inputs[0].is_static:
        return None
    for scaled, beta in either_order(call):
        product = rw.producer(scaled, "multiply")
        for normal, gamma in either_order(product) if product else []:
            gone: list[OpCall] = [product] if product else []
            found = _normalised(rw, normal, gone)
            if found is None:
                continue
            x, epsilon = found
            is_affine = all(v.shape == x.shape[-1:] and not rw.producer(v) for v in (gamma, beta))
            if not is_affine or not _only_inside(rw, gone, call):
                continue
            gone = [op for op in rw.graph.ops if any(op is g for g in gone)]
            attrs = {"axis": x.ndim - 1, "epsilon": epsilon}
            done = absorb(call, gone, kind="layer_norm", inputs=(x, gamma, beta), attrs=attrs)
            return [done], gone
    return None


def _normalised(rw: Rewriter, value: Value, gone: list[OpCall]) -> tuple[Value, float] | None:
    """x and epsilon of (x - mean) / sqrt(variance + epsilon), or times its reciprocal."""
    call = rw.producer(value)
    if call is None or call.kind not in ("divide", "multiply"):
        return None
    gone.append(call)
    for centred, scale in [call.inputs] if call.kind == "divide" else either_order(call):
        minus = rw.producer(centred, "subtract")
        root = scale if call.kind == "divide" else _reciprocal(rw, scale, gone)
        spread = None if minus is None or root is None else _spread(rw, root, gone)
        if minus is None or spread is None:
            continue
        variance, epsilon = spread
        x = minus.inputs[0]
        mean = rw.producer(minus.inputs[1], "mean")
        if mean is None or mean.inputs[0] is not x or not _over_rows(mean, x):
            continue
        gone += [minus, mean]
        inside = _is_variance(rw, variance, x, centred, minus.inputs[1], gone)
        return (x, epsilon) if inside else None
    return None


def _reciprocal(rw: Rewriter, value: Value, gone: list[OpCall]) -> Value | None:
    """What stands under a reciprocal: 1 / s; rsqrt is its own, see `_spread`."""
    call = rw.producer(value)
    if call is not None and call.kind == "rsqrt":
        return value
    if call is None or call.kind != "divide" or not is_scalar(call.inputs[0], 1.0):
        return None
    gone.append(call)
    return call.inputs[1]


def _spread(rw: Rewriter, root: Value, gone: list[OpCall]) -> tuple[Value, float] | None:
    """The variance and epsilon of sqrt(variance + epsilon)."""
    call = rw.producer(root)
    plus = rw.producer(call.inputs[0], "add") if call and call.kind in ("sqrt", "rsqrt") else None
    if call is None or plus is None:
        return None
    for variance, epsilon in either_order(plus):
        if epsilon.scalar is not None:
            gone += [call, plus]
            return variance, float(epsilon.scalar)
    return None


def _is_variance(
    rw: Rewriter, value: Value, x: Value, centred: Value, mean: Value, gone: list[OpCall]
) -> bool:
    """Whether it is the mean of the squares of what is centred, or Relay's `variance`."""
    call = rw.producer(value)
    if call is None or not _over_rows(call, x):
        return False
    gone.append(call)
    if call.kind == "variance":
        return call.inputs[0] is x and call.inputs[1] is mean and not call.attrs["unbiased"]
    square = rw.producer(call.inputs[0]) if call.kind == "mean" else None
    if square is None or square.inputs[0] is not centred:
        return False
    gone.append(square)
    by_power = square.kind == "power" and is_scalar(square.inputs[1], 2.0)
    return by_power or (square.kind == "multiply" and square.inputs[1] is centred)


def _over_rows(call: OpCall, x: Value) -> bool:
    """Whether the reduction is over the last axis, which it keeps."""
    axis = call.attrs.get("axis")
    axes = (axis,) if isinstance(axis, int) else axis or ()
    return bool(call.attrs.get("keepdims")) and [a % x.ndim for a in axes] == [x.ndim - 1]


def _only_inside(rw: Rewriter, gone: list[OpCall], root: OpCall) -> bool:
    """Whether nothing but the root reads what the ops on the way compute."""
    inside = {id(op) for op in (*gone, root)}
    between = [v for op in gone for v in op.outputs]
    read_inside = all(id(u) in inside for v in between for u in rw.graph.users(v))
    return read_inside and not any(rw.graph.is_output(v) for v in between)
