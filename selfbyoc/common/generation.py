"""Which TVM is installed, without importing it: "relay" (0.16 to 0.19) or "relax" (0.26, 0.27)."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def generation() -> str:
    """By its folders. A TVM that has both graph IRs counts as Relay."""
    spec = importlib.util.find_spec("tvm")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    return "relay" if (folder / "relay").is_dir() else "relax"


GENERATION = generation()
