"""What the linter found: one record a finding."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or missing, in a declaration; printed as `file:line: message`."""

    kind: str  # a short name, stable for filters: `unused-argument`
    message: str
    composite: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        owner = f"composite {self.composite}: " if self.composite else ""
        return f"{where}{owner}{self.message} [{self.kind}]"


def place(function: Callable[..., object] | None) -> tuple[str, int]:
    """File and line of a function; nothing for one that has no source (made by exec, in C)."""
    try:
        target = inspect.unwrap(function) if function is not None else None
        file = inspect.getsourcefile(target) or ""  # type: ignore[arg-type]
        return file, inspect.getsourcelines(target)[1]  # type: ignore[arg-type]
    except (TypeError, OSError):
        return "", 0
