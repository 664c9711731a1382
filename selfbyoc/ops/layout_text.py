"""Layouts as their text has them: where the axes of a tensor are. NCHW16c holds channels twice.

A part is an axis, and the size of a block of it; 0 for what is outside of its blocks. The blocks of
one axis lie from outer to inner: NCHW16c of NCHW is (0, 0), (1, 0), (2, 0), (3, 0), (1, 16).
"""

from __future__ import annotations

import re

Part = tuple[int, int]
Parts = tuple[Part, ...]
_PART = re.compile(r"([A-Z])|(\d+)([a-z])")


def letters_of(layout: str) -> str:
    """The axes that a layout names: NCHW of NCHW16c."""
    return "".join(letter for letter in layout if letter.isupper())


def parts_of(layout: str, letters: str) -> Parts | None:
    """A layout by its text, over the axes `letters`; None of one that TVM would not read so."""
    found = _PART.findall(layout)
    if "".join("".join(each) for each in found) != layout:
        return None
    if sorted(letters_of(layout)) != sorted(letters):
        return None
    named = [(axis or inner.upper(), int(size or 0)) for axis, size, inner in found]
    if any(letter not in letters for letter, _ in named):
        return None
    parts = tuple((letters.index(letter), size) for letter, size in named)
    return parts if outer_first(parts) else None


def outer_first(parts: Parts) -> bool:
    """Whether what is outside of an axis's blocks comes before them."""
    return all(parts[: parts.index((axis, 0))].count((axis, size)) == 0 for axis, size in parts
               if size)  # fmt: skip
