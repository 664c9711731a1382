"""What a convolution multiplies: floats, or words of levels."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from ....tvm import tir
from ....tvm.types import PrimExpr, Tensor
from .columns import Columns


@dataclass(frozen=True)
class Operands:
    """How an element of the image and one of the weight are multiplied, what the padding holds
    (None: zero), and of what a window over one channel reads words of, if of any.
    """

    times: Callable[[PrimExpr, PrimExpr], PrimExpr] = operator.mul
    padding: PrimExpr | None = None
    columns: Columns | None = None

    def outside(self, x: Tensor) -> PrimExpr:
        """The element of the padding of an image."""
        return tir.const(0, x.dtype) if self.padding is None else self.padding


FLOATS = Operands()
