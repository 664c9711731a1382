"""What was built, written to a file and loaded again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any


def reloaded(roads: Any, executor: str, built: Any) -> Any:
    """The same, out of a library that is gone: what is loaded stays."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        roads.write(executor, built, folder)
        return roads.load(executor, folder)
