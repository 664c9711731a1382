"""Packages of the optional extras, imported where they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import MissingExtra


def extra(module: str) -> Any:
    """Import a package of the extra `demo`, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as err:
        raise MissingExtra(
            f"{module} is missing: pip install {module} (all for the demo: 'selfbyoc[demo]')"
        ) from err
    except ImportError as err:  # pip did its part: a library of the system is missing, or too old
        raise MissingExtra(f"{module} is installed and does not load: {err}") from err
