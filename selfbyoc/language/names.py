"""What composites may be called."""

from __future__ import annotations

import re

from ..errors import CompositeError

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


def check_name(name: str) -> None:
    """Raise CompositeError for what is no composite's name."""
    if not _NAME.match(str(name)):
        expected = "expected lower case letters, digits and underscores"
        raise CompositeError(f"composite name {name!r}: {expected}")
