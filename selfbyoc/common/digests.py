"""What the bytes of a file are known by, and where a text stands in it."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from .files import opened
from .threads import core_count

_PART = 8 << 20  # bytes that a thread reads and hashes at once


def digest_of(path: Path) -> str:
    """A SHA-256: of those of the file's parts, which threads share out. Raises InputError where it
    cannot be read.
    """
    return digest_and_places(path, b"")[0]


def digest_and_places(path: Path, text: bytes) -> tuple[str, list[int]]:
    """The same, and where some text begins in the file, wherever it does."""
    with opened(path) as file:
        handle = file.fileno()
        starts = range(0, os.fstat(handle).st_size, _PART)
        with ThreadPoolExecutor(max(1, min(core_count(), len(starts)))) as pool:
            # They are hashed without Python's lock.
            found = [*pool.map(partial(_part, handle, text), starts)]
    digest = hashlib.sha256(b"".join(part for part, _ in found)).hexdigest()
    return digest, [place for _, places in found for place in places]


def _part(handle: int, text: bytes, start: int) -> tuple[bytes, list[int]]:
    data, places = _read(handle, start, _PART + max(0, len(text) - 1)), []
    at = data.find(text) if text else -1
    while 0 <= at < _PART:
        places.append(start + at)
        at = data.find(text, at + 1)
    return hashlib.sha256(memoryview(data)[:_PART]).digest(), places


def _read(handle: int, start: int, size: int) -> bytes:
    """So many bytes, or up to the end: a system may give fewer at once."""
    data = os.pread(handle, size, start)
    while len(data) < size and (more := os.pread(handle, size - len(data), start + len(data))):
        data += more
    return data
