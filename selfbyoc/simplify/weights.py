"""Weights of dense layers, however a generation writes these."""

from __future__ import annotations

import numpy as np

from ..ir.rewriting import Editor, Made
from ..ops.attrs import is_empty, plain
from ..tvm.types import Expr

PRODUCTS = ("dense", "matmul")


def weight_by_units(made: Made, to: Editor) -> np.ndarray | None:
    """[units, depth] of a product with a constant of two axes; None of any other op."""
    found = weight_as_it_lies(made, to)
    return None if found is None else np.ascontiguousarray(found)


def weight_as_it_lies(made: Made, to: Editor) -> np.ndarray | None:
    """The same, of which no copy is made: it may lie by depth. What is multiplied without a sum is
    no weight (partition/weights.py).
    """
    if made.kind not in PRODUCTS:
        return None
    array, turned = of_constant(made.args[1], to)
    if array is None or array.ndim != 2:
        return None
    is_by_units = turned if made.kind == "matmul" else not turned
    found = array if is_by_units else array.T
    return found if found.shape[1] != 1 else None


def out_dtype(made: Made) -> str | None:
    """The dtype that a product is asked for; None: that of its inputs."""
    found = plain(made.raw["out_dtype"])
    return None if is_empty(found) else str(found)


def of_constant(x: Expr, to: Editor) -> tuple[np.ndarray | None, bool]:
    """What a constant holds, and whether it is read transposed: its two axes, by an op."""
    before = to.made(x)
    if before is None:
        return to.array(x), False
    array = to.array(before.args[0]) if is_swap(before) else None
    return (None, False) if array is None or array.ndim != 2 else (array, True)


def constant_behind(x: Expr, to: Editor) -> Expr:
    """The constant that `of_constant` reads."""
    before = to.made(x)
    return x if before is None else before.args[0]


def is_swap(made: Made) -> bool:
    """Whether it transposes a matrix."""
    return made.kind == "transpose" and made.attrs["axes"] in (None, (), (1, 0))
