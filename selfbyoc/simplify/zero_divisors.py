"""Integers divided by a constant zero are zero, quotient and remainder, as where the divisor is
data (tvm/divisions.py): TVM puts such a constant into the expression and refuses to fold it.

    floor_divide(x, 0)  ->  multiply(x, 0)
"""

from __future__ import annotations

from ..ir.rewriting import Editor, Made, dtype
from ..tvm.types import Expr

DIVISIONS = ("divide", "floor_divide", "floor_mod", "mod", "trunc_divide", "trunc_mod")


def without_zero_divisors(made: Made, to: Editor) -> Expr | None:
    """A quotient or a remainder by one zero, as a product with it."""
    if made.name not in DIVISIONS or "int" not in dtype(to, made.args[0]):
        return None
    divisor = to.array(made.args[1])
    if divisor is None or divisor.ndim or divisor:
        return None
    return to.emit("multiply", *made.args)
