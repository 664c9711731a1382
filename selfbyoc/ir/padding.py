"""The padding of a convolution as that of every axis."""

from __future__ import annotations

from collections.abc import Sequence


def pad_widths(layout: str, padding: Sequence[int]) -> list[tuple[int, int]]:
    """(top, left, bottom, right) of an image in this layout: (before, after) of each axis."""
    top, left, bottom, right = padding
    of_axis = {"H": (top, bottom), "W": (left, right)}
    return [of_axis.get(letter, (0, 0)) for letter in layout if letter.isalpha()]
