"""An exported file as a module of TVM's."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .._tvm import load_shared, tvm

_loaded: set[Path] = set()


def native_module(path: Path) -> Any:
    """The file as a module of TVM's. Under a name that it knows, the system's loader hands out the
    file that was there before, so the second time it gets another one.
    """
    place = path.resolve()
    if place not in _loaded:
        native = tvm.runtime.load_module(str(path))
        _loaded.add(place)
        return native
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / path.name
        link.symlink_to(place)
        return load_shared(str(link))
