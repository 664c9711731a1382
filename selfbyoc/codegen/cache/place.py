"""Where the compile cache is. Nothing here needs TVM."""

from __future__ import annotations

import os
from pathlib import Path

from ...common.files import expanded
from ...errors import InputError
from .store import warn

_OFF = ("off", "0", "no", "false")


def folder() -> Path | None:
    """Where SELFBYOC_CACHE puts the cache, or the user's cache folder; None if it is off."""
    asked = os.environ.get("SELFBYOC_CACHE", "")
    if asked.lower() in _OFF:
        return None
    if asked:
        return expanded(asked)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return expanded(base) / "selfbyoc"
    except InputError as err:  # nobody asked for it by name
        warn(f"the compile cache is not used: {err}; SELFBYOC_CACHE says where else")
        return None
