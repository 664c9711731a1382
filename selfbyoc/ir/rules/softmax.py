"""Rules of canonicalisation: PyTorch's softmax that gives rows of -inf alone the value 0."""

from __future__ import annotations

import math

from ...graph import OpCall, Value
from ...ops.softmax import NAN_TOO
from .rewriter import Rewrite, Rewriter, absorb

# From where()'s condition back to the scores.
_GUARD = ("logical_not", "cast", "max", "cast", "logical_not", "equal")


def guarded_softmax(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """where(all scores of the row are -inf, 0, softmax(scores))"""
    if call.kind != "where" or len(call.inputs) != 3:
        return None
    condition, zeros, soft = call.inputs
    is_nan = rw.producer(condition, "isnan")
    if is_nan is not None:
        return _without_nan(rw, call, is_nan)
    softmax, filled = rw.producer(soft, "softmax"), rw.producer(zeros, "full_like")
    guard = _chain(rw, condition)
    if softmax is None or filled is None or len(guard) != len(_GUARD):
        return None
    scores = softmax.inputs[0]
    if not (_is_guard(guard, scores) and filled.inputs[0] is soft and filled.inputs[1].scalar == 0):
        return None
    readers = [user for user in rw.graph.users(soft) if user is not filled and user is not call]
    if readers or rw.graph.is_output(soft) or not rw.only_reader(zeros):
        return None
    gone = [softmax, *reversed(guard), filled]
    attrs = {**softmax.attrs, "guarded": True}
    return [absorb(call, gone, kind="softmax", inputs=(scores,), attrs=attrs)], gone


def _without_nan(rw: Rewriter, call: OpCall, is_nan: OpCall) -> Rewrite | None:
    """where(isnan(softmax), 0, softmax), as PyTorch writes ONNX"""
    condition, zero, soft = call.inputs
    softmax = rw.producer(soft, "softmax")
    if softmax is None or is_nan.inputs[0] is not soft or zero.scalar != 0:
        return None
    readers = [user for user in rw.graph.users(soft) if user is not is_nan and user is not call]
    if readers or rw.graph.is_output(soft) or not rw.only_reader(condition):
        return None
    gone, attrs = [softmax, is_nan], {**softmax.attrs, "guarded": NAN_TOO}
    return [absorb(call, gone, kind="softmax", inputs=softmax.inputs, attrs=attrs)], gone


def _chain(rw: Rewriter, condition: Value) -> list[OpCall]:
    """The ops of the guard, the last first; fewer where it is something else."""
    found: list[OpCall] = []
    value = condition
    for kind in _GUARD:
        call = rw.producer(value, kind)
        if call is None or not rw.only_reader(value):
            break
        found.append(call)
        value = call.inputs[0]
    return found


def _is_guard(guard: list[OpCall], scores: Value) -> bool:
    largest, equal = guard[2], guard[-1]
    axis = largest.attrs["axis"]
    last = (axis,) if isinstance(axis, int) else tuple(axis or ())
    over_rows = [a % scores.ndim for a in last] == [scores.ndim - 1] and largest.attrs["keepdims"]
    return bool(over_rows and equal.inputs[0] is scores and equal.inputs[1].scalar == -math.inf)
