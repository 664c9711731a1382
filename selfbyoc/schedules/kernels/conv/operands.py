"""What a convolution multiplies: floats, or words of levels."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from ....language.types import Expr, Tensor
from ....tvm import tir


@dataclass(frozen=True)
class Operands:
    """How an element of the image and one of the weight are multiplied, and what the padding holds
    (None: zero).
    """

    times: Callable[[Expr, Expr], Expr] = operator.mul
    padding: Expr | None = None

    def outside(self, x: Tensor) -> Expr:
        """The element of the padding of an image."""
        return tir.const(0, x.dtype) if self.padding is None else self.padding


FLOATS = Operands()
