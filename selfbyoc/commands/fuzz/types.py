"""What rules of types share: a type, and how a program that has no meaning is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Type = tuple[tuple[int, ...], str]
Attrs = Mapping[str, Any]


class Invalid(Exception):
    """The program has no meaning: shapes that do not fit, an op on the wrong dtype."""


def check(condition: bool, text: str) -> None:
    """Raise Invalid with the text unless it holds."""
    if not condition:
        raise Invalid(text)


def axis_of(axis: int, ndim: int) -> int:
    """An axis counted from the front; raises Invalid."""
    check(-ndim <= axis < ndim, f"axis {axis} of {ndim}")
    return axis % ndim
