"""What a lower floor needs from an upper one, imported when it is asked for.

Imports run downwards (docs/makers/design.md, "Floors"). A few things are needed the other way
round: the built-in composites, the default schedule, the verifier, and the functions that TVM
calls. A slot that an upper module fills is empty wherever nobody imported that module; a name that
is imported at its first use is not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def upper(path: str) -> Any:
    """`upper("schedules:BUILTIN")` is `BUILTIN` of `selfbyoc.schedules`."""
    module, _, name = path.partition(":")
    return getattr(import_module(f"{_PACKAGE}.{module}"), name)
