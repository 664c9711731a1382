"""What a small tensor of an ONNX model holds: numbers, and expressions of open sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from ....tvm import tir
from ....tvm.types import BlockBuilder, Expr, PrimExpr

FLOATS = ("float32", "float64")  # that sizes are cast to


@dataclass(frozen=True)
class Known:
    """The elements of a tensor: of its dtype, or objects where some are expressions."""

    elements: np.ndarray
    dtype: str

    @property
    def is_constant(self) -> bool:
        """Whether all elements are numbers."""
        return self.elements.dtype != object


def known_of(elements: object, dtype: str) -> Known:
    """Elements as an array of their dtype if all are numbers, else of objects."""
    array = elements if isinstance(elements, np.ndarray) else objects_of(elements)
    if all(isinstance(each, (bool, int, float, np.generic)) for each in array.ravel().tolist()):
        return Known(array.astype(dtype), dtype)
    return Known(array, dtype)


def objects_of(elements: object) -> np.ndarray:
    """A list, or one element, as an array; NumPy would look into expressions."""
    found = np.empty(len(elements) if isinstance(elements, list) else (), object)
    if isinstance(elements, list):
        found[:] = elements
    else:
        found[()] = elements
    return found


def as_tensor(builder: BlockBuilder, known: Known) -> Expr:
    """What is known as the tensor that ops read."""
    if known.is_constant:
        return relax.const(known.elements, known.dtype)
    flat: Iterable[Any] = known.elements.ravel().tolist()
    numbers = [tir.Cast("int64", e) if known.dtype == "bool" else e for e in flat]
    x = builder.emit(relax.op.shape_to_tensor(relax.ShapeExpr(numbers)))
    if known.elements.ndim != 1:
        x = builder.emit(relax.op.reshape(x, relax.ShapeExpr(list(known.elements.shape))))
    return x if known.dtype == "int64" else builder.emit(relax.op.astype(x, known.dtype))


def as_whole(known: Known) -> Known | None:
    """Floats as integers; None if some are none. A size that was cast to a float is one."""
    if known.dtype not in FLOATS:
        return known
    found = [_whole(each) for each in known.elements.ravel().tolist()]
    if any(each is None for each in found):
        return None
    return Known(objects_of(found).reshape(known.elements.shape), known.dtype)


def _whole(number: PrimExpr) -> PrimExpr:
    if not isinstance(number, float):
        return number
    return int(number) if number.is_integer() else None
