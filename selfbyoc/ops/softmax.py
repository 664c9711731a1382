"""A softmax by its parts, as kernels and the op's own compute have them."""

from __future__ import annotations

from dataclasses import dataclass

from ..tvm import dtype_of, tir
from ..tvm.types import PrimExpr

NAN_TOO = "nan"  # a softmax that is guarded so gives zeros where it would give NaN


@dataclass(frozen=True)
class Softmax:
    """What a softmax does with the largest of a row and with the sum of its powers.

    Where it is `guarded`, a row of -inf alone gives zeros: nothing less than a number is
    subtracted, and all other sums are 1 and more, as the power of the largest is 1. NaN stays NaN
    then; guarded against NAN_TOO, it gives zeros as well.
    """

    guarded: bool | str

    def subtracted(self, peak: PrimExpr) -> PrimExpr:
        """What each element is less by."""
        return tir.Max(tir.min_value(dtype_of(peak)), peak) if self.guarded else peak

    def divided(self, power: PrimExpr, total: PrimExpr) -> PrimExpr:
        """An element of the result."""
        divisor = tir.Max(tir.const(1, dtype_of(total)), total) if self.guarded else total
        return self._unless_nan(power / divisor, total >= tir.const(0, dtype_of(total)))

    def inverse(self, total: PrimExpr) -> PrimExpr:
        """What powers, or sums of them, are multiplied by."""
        return self.divided(tir.const(1, dtype_of(total)), total)

    def multiplied(self, power: PrimExpr, inverse: PrimExpr) -> PrimExpr:
        """An element of the result, or a sum of such."""
        return self._unless_nan(power * inverse, inverse > tir.const(0, dtype_of(inverse)))

    def _unless_nan(self, value: PrimExpr, is_number: PrimExpr) -> PrimExpr:
        if self.guarded != NAN_TOO:
            return value
        return tir.Select(is_number, value, tir.const(0, dtype_of(value)))
