"""What the bytes of a file are known by."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .files import opened
from .threads import core_count

_PART, _READ = 8 << 20, 1 << 20  # bytes: what a thread hashes at once; of one reading


def digest_of(path: Path) -> str:
    """A SHA-256: of those of the file's parts, which threads share out. Raises InputError where it
    cannot be read.
    """
    with opened(path) as file:
        handle = file.fileno()
        starts = range(0, os.fstat(handle).st_size, _PART)
        with ThreadPoolExecutor(max(1, min(core_count(), len(starts)))) as pool:
            found = [*pool.map(lambda start: _part(handle, start), starts)]  # without Python's lock
    return hashlib.sha256(b"".join(found)).hexdigest()


def _part(handle: int, start: int) -> bytes:
    found, buffer = hashlib.sha256(), memoryview(bytearray(_READ))
    at, end = start, start + _PART
    while at < end and (count := os.preadv(handle, [buffer[: end - at]], at)):
        found.update(buffer[:count])
        at += count
    return found.digest()
