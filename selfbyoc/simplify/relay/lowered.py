"""Relay: qnn ops as TVM lowers them, so that they join kernels: each input at the scale of the
result in int32, then the op of integers.

    qnn.add(x, y)          ->  cast(clip(requantize(x) + requantize(y) - zero))
    qnn.mul(x, y)          ->  requantize(around_zero(x) * around_zero(y))
    qnn.concatenate(x, y)  ->  concatenate(requantize(x), requantize(y))
    qnn.avg_pool2d(x)      ->  cast(clip(avg_pool2d(requantize(x))))
    qnn.leaky_relu(x)      ->  cast(clip(where(x < zero, its part of requantize(x), requantize(x))))

What a qnn.requantize leaves open is said: TVM decides it by the target, in floats where a CPU has
SSE4.1; here a model gives the same on each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from tvm import relay

from ...ir.rewriting import Editor, Made, dtype
from ...ops.fixed_point import fixed_point
from ...tvm.types import Attr, Expr

LEVELS = ("int8", "uint8")
SUMS = "int32"
_POOL = ("pool_size", "strides", "padding", "dilation", "ceil_mode", "layout", "count_include_pad")


@dataclass(frozen=True)
class Scale:
    """Of a whole tensor: the scale that it has as a float32, and its zero point."""

    scale: float
    zero: int


def as_lowered(made: Made, to: Editor) -> Expr | None:
    """An op of levels of one scale each, which the model knows."""
    if made.name == "qnn.requantize":
        return _said(made, to)
    lower = _LOWERED.get(made.name)
    return None if lower is None else lower(made, to)


def _in_force() -> dict[str, Attr]:
    """How a requantize rounds that does not say so itself."""
    config = relay.qnn.op.current_requantize_config()
    return {
        "rounding": config.rounding or "UPWARD",
        "compute_dtype": config.compute_dtype or "int64",
    }


def _said(made: Made, to: Editor) -> Expr | None:
    force = {name: value for name, value in _in_force().items() if str(made.raw[name]) == "None"}
    return to.again(made, made.args, **force) if force else None


def _of(scale: Expr, zero: Expr, to: Editor) -> Scale | None:
    arrays = to.array(scale), to.array(zero)
    if any(array is None or array.size != 1 for array in arrays):
        return None
    factor, point = (array.flat[0] for array in arrays if array is not None)
    return Scale(float(factor), int(point)) if np.isfinite(factor) and factor > 0 else None


def _scales(args: tuple[Expr, ...], to: Editor) -> list[Scale]:
    """Of scales and zero points in turn; none if one of them is not known, or of channels."""
    found = [_of(*pair, to) for pair in zip(args[::2], args[1::2], strict=True)]
    return [one for one in found if one is not None] if None not in found else []


def _wide(x: Expr, old: Scale, new: Scale, to: Editor) -> Expr:
    """Levels of another scale, not limited to those of 8 bits."""
    return to.emit("cast", x, dtype=SUMS) if old == new else _rescaled(x, old, new, to, SUMS)


def _rescaled(x: Expr, old: Scale, new: Scale, to: Editor, wanted: str) -> Expr:
    numbers = [
        to.constant(np.asarray(value, kind))
        for each in (old, new)
        for value, kind in ((each.scale, "float32"), (each.zero, "int32"))
    ]
    return to.call("qnn.op.requantize", x, *numbers, out_dtype=wanted, **_in_force())


def _limited(x: Expr, wanted: str, to: Editor) -> Expr:
    limits = np.iinfo(wanted)
    low, high = float(limits.min), float(limits.max)
    return to.emit("cast", to.emit("clip", x, a_min=low, a_max=high), dtype=wanted)


def _number(value: int, to: Editor) -> Expr:
    return to.constant(np.asarray(value, SUMS))


def _sum(made: Made, to: Editor, kind: str, back: str) -> Expr | None:
    """Both sides count from the zero point of the result: a sum has it twice, a difference not."""
    both, known, wanted = made.args[:2], _scales(made.args[2:], to), _levels(made.given[:2], to)
    if not known or not wanted:
        return None
    *own, result = known
    sides = [_wide(x, old, result, to) for x, old in zip(both, own, strict=True)]
    total = to.emit(kind, *sides)
    if result.zero:
        total = to.emit(back, total, _number(result.zero, to))
    return _limited(total, wanted, to)


def _product(made: Made, to: Editor) -> Expr | None:
    both, known, wanted = made.args[:2], _scales(made.args[2:], to), _levels(made.given[:2], to)
    if not known or not wanted:
        return None
    *own, result = known
    sides = [_wide(x, old, Scale(old.scale, 0), to) for x, old in zip(both, own, strict=True)]
    scale = float(np.float32(own[0].scale) * np.float32(own[1].scale))
    return _rescaled(to.emit("multiply", *sides), Scale(scale, 0), result, to, wanted)


def _joined(made: Made, to: Editor) -> Expr | None:
    parts, scales, zeros = (to.fields(arg) for arg in made.args[:3])
    wanted = _levels(to.fields(made.given[0]) or (), to)
    if parts is None or scales is None or zeros is None or not wanted:
        return None
    pairs = [arg for pair in zip(scales, zeros, strict=True) for arg in pair]
    known = _scales((*pairs, *made.args[3:]), to)
    if not known:
        return None
    *own, result = known
    levels = [
        x if old == result else _rescaled(x, old, result, to, wanted)
        for x, old in zip(parts, own, strict=True)
    ]
    return to.emit("concatenate", *levels, axis=int(made.raw["axis"]))


def _pooled(made: Made, to: Editor) -> Expr | None:
    known, wanted = _scales(made.args[1:], to), _levels(made.given[:1], to)
    if not known or not wanted:
        return None
    old, new = known
    attrs = {name: made.raw[name] for name in _POOL}
    means = to.call("nn.avg_pool2d", _wide(made.args[0], old, new, to), **attrs)
    return _limited(means, wanted, to)


def _leaky(made: Made, to: Editor) -> Expr | None:
    """Below zero, alpha times a level and the rest times the zero point, each rounded."""
    x, known, wanted = made.args[0], _scales(made.args[1:], to), _levels(made.given[:1], to)
    if not known or not wanted:
        return None
    old, new = known
    alpha = float(made.raw["alpha"])
    level, point = _wide(x, old, new, to), _number(new.zero, to)
    part = to.emit("add", _times(level, alpha, to), _times(point, 1 - alpha, to))
    below = to.emit("less", to.emit("cast", x, dtype=SUMS), _number(old.zero, to))
    return _limited(to.emit("where", below, part, level), wanted, to)


def _times(x: Expr, factor: float, to: Editor) -> Expr:
    multiplier, shift = fixed_point(factor)
    return to.emit("fixed_point_multiply", x, multiplier=multiplier, shift=31 - shift)


def _levels(given: Sequence[Expr], to: Editor) -> str:
    """The dtype of an op's levels, as they were before: types of what is new take long to infer.
    None of other dtypes.
    """
    found = {dtype(to, x) for x in given}
    return found.pop() if len(found) == 1 and found <= set(LEVELS) else ""


_LOWERED: dict[str, Callable[[Made, Editor], Expr | None]] = {
    "qnn.add": partial(_sum, kind="add", back="subtract"),
    "qnn.avg_pool2d": _pooled,
    "qnn.concatenate": _joined,
    "qnn.leaky_relu": _leaky,
    "qnn.mul": _product,
    "qnn.subtract": partial(_sum, kind="subtract", back="add"),
}
