"""All wheels with ONNX files."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from .hearing import HEARING
from .reading import READING
from .seeing import SEEING
from .understanding import UNDERSTANDING
from .wheel import File, Wheel

WHEELS = (*SEEING, *READING, *HEARING, *UNDERSTANDING)
Entry = tuple[Wheel, File]


def key_of(wheel: Wheel, file: File) -> str:
    """What tells a file from all others."""
    return f"{wheel.family}/{wheel.name(file)}"


def entries(only: Sequence[str] = ()) -> dict[str, Entry]:
    """The files by key, those alone that one of the patterns fits where there are any."""
    found = {key_of(wheel, file): (wheel, file) for wheel in WHEELS for file in wheel.files}
    return {
        key: entry
        for key, entry in found.items()
        if not only or any(fnmatch.fnmatch(key, pattern) for pattern in only)
    }
