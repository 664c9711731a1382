"""Arrays that `selfbyoc run` reads. They have no checksum: a damaged one is an error, or another
array of the same shape.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from selfbyoc.commands.model.run import _read as read_array
from selfbyoc.runtime.signature import checked

from .specimen import F32, Specimen


def specimens() -> Iterator[Specimen]:
    """A small one, so that most damage hits its header."""
    file = io.BytesIO()
    np.save(file, np.ones((3, 5), F32))
    yield Specimen("an array", {"x.npy": file.getvalue()}, _read, lambda found, folder: "")


def _read(folder: Path) -> list[np.ndarray]:
    return [checked(read_array(folder / "x.npy"), ("x", (3, 5), F32))]
