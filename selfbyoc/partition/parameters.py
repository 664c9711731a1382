"""Weights that a user binds: they must be what `main` says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InputError
from ..graph import Value, type_text
from ..tvm.types import NDArray


def check_params(declared: Iterable[Value], params: Mapping[str, NDArray]) -> None:
    """Raises InputError for a weight of another type than `main` declares; TVM would say of some op
    that its inputs do not fit.
    """
    for value in declared:
        given: Any = params.get(value.name)
        if given is None or not value.is_static or not hasattr(given, "shape"):
            continue
        shape, dtype = tuple(map(int, given.shape)), str(given.dtype)
        if (shape, dtype) != (value.shape, value.dtype):
            raise InputError(
                f"params: {value.name}: expected {value.type}, found {type_text(shape, dtype)}"
            )
