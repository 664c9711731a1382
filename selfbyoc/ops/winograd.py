"""Which convolutions are transformed, as far as the whole program decides it."""

from __future__ import annotations

import os

WINDOWS = ((3, 3), (5, 5))


def is_allowed() -> bool:
    """Whether any is: not where SELFBYOC_WINOGRAD is 0."""
    return os.environ.get("SELFBYOC_WINOGRAD", "1") != "0"
