"""Is a library whole: before the system's loader maps it, for which a file that was cut off is a
SIGBUS, and one with other bytes whatever they make of it.

A file of ours holds the number of bytes that are loaded of it and their checksum, in a note of
ELF's (`seal`). `strip` keeps it, as it changes nothing that is loaded. Of another tool's file only
the sizes in its headers can be asked.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..common.files import expanded, opened
from ..common.threads import core_count
from ..errors import DamagedFile, InputError
from .elf import Cut, Image, read_image

OWNER, TEXT, SEAL = b"selfbyoc", 1, 2  # our notes: what the file is, and its checksum
GONE = "its checksum is gone"
_SEAL = struct.Struct("<QI4x")
_PART, _READ = 16 << 20, 1 << 20  # bytes: a checksum's, which threads share out; of one reading


@dataclass(frozen=True)
class _Sum:
    """What is loaded of a file: how many bytes, and a checksum of them."""

    size: int
    crc: int

    def __str__(self) -> str:
        return f"checksum {self.crc:08x} of {self.size:,} bytes"


@dataclass(frozen=True)
class Told:
    """The text of our note, where the file has one, and whether its checksum was compared."""

    text: bytes | None
    is_elf: bool = True
    is_sealed: bool = False


def read_whole(path: Path) -> Told:
    """Our note in a library that is whole.

    Raises DamagedFile where it is not, InputError where the file cannot be read.
    """
    with opened(path) as file, _naming(path, file):
        image = read_image(file, _length(file))
        if image is None:
            return Told(None, is_elf=False)
        place, text = _place(image, SEAL), _place(image, TEXT)
        if place is not None:
            _check(file, image, place)
        elif text is not None:
            raise ValueError(GONE)
        found = None if text is None else _bytes(file, text)
        return Told(found, is_sealed=place is not None)


def seal(path: str | Path) -> None:
    """Write length and checksum of a library into it, as it is now: for one that another program
    changed on purpose, such as patchelf. `export_library` does it.

    Raises InputError for what `export_library` did not write, DamagedFile for what was cut off.
    """
    found = expanded(path)
    if not sealed(found):
        raise InputError(f"{found} has no place for a checksum; expected what export_library wrote")


def sealed(path: Path) -> bool:
    """`seal`; whether there is a place for it: on Linux, and wherever else libraries are ELF's."""
    with opened(path, "r+b") as file, _naming(path, file):
        image = read_image(file, _length(file))
        place = None if image is None else _place(image, SEAL)
        if image is None or place is None:
            return False
        found = _summed(file, image, place)
        file.seek(place.start)
        file.write(_SEAL.pack(found.size, found.crc))
    return True


@contextmanager
def _naming(path: Path, file: BinaryIO) -> Iterator[None]:
    try:
        yield
    except Cut as err:
        least = "at least " if err.least else ""
        expected = f"{least}{err.expected:,}"
        raise DamagedFile(f"{path} is cut off: {_length(file):,} of {expected} bytes") from err
    except ValueError as err:
        raise DamagedFile(f"{path} is damaged: {err}") from err


def _length(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _place(image: Image, kind: int) -> range | None:
    found = (n.place for n in image.notes if (n.owner, n.kind) == (OWNER, kind))
    return next(found, None)


def _check(file: BinaryIO, image: Image, sealed: range) -> None:
    data, found = _bytes(file, sealed), _summed(file, image, sealed)
    expected = _Sum(*_SEAL.unpack(data)) if len(data) == _SEAL.size else "a note of 16 bytes"
    if found != expected:
        raise ValueError(f"expected {expected}, found {found}")


def _summed(file: BinaryIO, image: Image, seal: range) -> _Sum:
    """Of all that a process sees of the file, except where the seal itself stands."""
    holes = sorted([*image.sections, seal], key=lambda hole: hole.start)
    covered = [p for place in (*image.headers, *image.loaded) for p in _without(place, holes)]
    parts = [p for place in covered for p in _parts(place)]
    handle, threads = file.fileno(), max(1, min(core_count(), len(parts)))
    with ThreadPoolExecutor(threads) as pool:  # zlib works without Python's lock
        found = list(pool.map(lambda part: _crc(handle, part), parts))
    return _Sum(sum(map(len, parts)), zlib.crc32(struct.pack(f"<{len(found)}I", *found)))


def _without(place: range, holes: Sequence[range]) -> Iterator[range]:
    at = place.start
    for hole in holes:
        if hole.stop > at and hole.start < place.stop:
            yield range(at, max(at, hole.start))
            at = min(hole.stop, place.stop)
    yield range(at, place.stop)


def _parts(place: range) -> Iterator[range]:
    for start in range(place.start, place.stop, _PART):
        yield range(start, min(start + _PART, place.stop))


def _crc(handle: int, part: range) -> int:
    """By reading, not by mapping: a file that is cut off meanwhile is short, and no SIGBUS."""
    buffer = memoryview(bytearray(min(_READ, len(part))))
    found, at = 0, part.start
    while at < part.stop:
        count = os.preadv(handle, [buffer[: part.stop - at]], at)
        if not count:
            raise Cut(part.stop)
        found, at = zlib.crc32(buffer[:count], found), at + count
    return found


def _bytes(file: BinaryIO, place: range) -> bytes:
    file.seek(place.start)
    return file.read(len(place))
