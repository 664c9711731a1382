"""Relay: a qnn.requantize of constant scales for each channel as multipliers and shifts, which a
kernel is passed: equal layers are one kernel, and none computes what is known ahead of time.

    qnn.requantize(x, scales, zero, scale, zero)
      ->  requantize_by_channel(x, multipliers, shifts)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...ir.origins import names_of_span
from ...ir.rewriting import Editor, Made
from ...ops.fixed_point import fixed_point, within_64_bits
from ...ops.requantized import UPPER
from ...ops.vocabulary import read_op
from ...printable import shown_name
from ...tvm.types import Expr

Array = np.ndarray


def scales_by_channel(made: Made, to: Editor) -> Expr | None:
    """The same arithmetic. Raises InputError for scales that mean nothing."""
    if made.name != "qnn.requantize":
        return None
    scale, zero, out_scale, out_zero = (to.array(arg) for arg in made.args[1:])
    _check(scale, made)
    _check(out_scale, made)
    kind, attrs = read_op(made.name, made.raw)
    numbers = [_number(array) for array in (zero, out_scale, out_zero)]
    if kind != "requantize" or scale is None or scale.size == 1 or None in numbers:
        return None
    if (one := _number(scale)) is not None:
        return to.again(made, [made.args[0], to.constant(np.asarray(one)), *made.args[2:]])
    factors = _factors(scale, float(np.float32(numbers[1])))
    if factors is None:
        return None
    points = {"input_zero_point": int(numbers[0]), "output_zero_point": int(numbers[2])}
    least = UPPER if factors[1].min() >= UPPER else 1  # no more: equal layers are one kernel
    return to.emit(
        "requantize_by_channel", made.args[0], *map(to.constant, factors),
        axis=int(made.raw["axis"]), **attrs, **points, least_shift=least,
    )  # fmt: skip


def _number(array: Array | None) -> Any:
    """The element of a constant that has the same one everywhere; None of any other."""
    return None if array is None or (array != array.flat[0]).any() else array.flat[0]


def _check(scale: Array | None, made: Made) -> None:
    wrong = np.empty(0) if scale is None else scale[~(np.isfinite(scale) & (scale > 0))]
    if wrong.size:
        names = ", ".join(names_of_span(made.call.span))
        node = f"{made.name} {shown_name(names)!r}" if names else made.name
        raise InputError(
            f"{node}: its scale holds {wrong.flat[0]}; expected finite numbers above 0"
        )


def _factors(scale: Array, out_scale: float) -> tuple[Array, Array] | None:
    """Multipliers and shifts; None of a ratio that is shifted to the left."""
    ratios = scale.astype(np.float64).reshape(-1) / out_scale
    multipliers, shifts = zip(*(within_64_bits(*fixed_point(r)) for r in ratios), strict=True)
    if min(shifts) < 1:
        return None
    return np.array(multipliers, "int32"), np.array(shifts, "int32")
