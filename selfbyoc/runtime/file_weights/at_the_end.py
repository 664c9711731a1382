"""Weights put into a library that is linked already: neither assembler nor linker copies them.

The linker sees a mark in their place, in a segment of its own that has the last addresses; what
follows in the file, which no process needs, is moved.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ...common.files import opened
from .table import up

# Of 64 bits, the lower byte first: the file's header, a segment's, a section's.
_STARTS = b"\x7fELF\x02\x01"
_HEADER, _SEGMENT, _SECTION = map(struct.Struct, ("<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<IIQQQQIIQQ"))
_LOAD = 1
_LONGEST = 1 << 20  # bytes of headers


@dataclass(frozen=True)
class _Linked:
    """The headers of what a linker wrote, and those of the segment and the section that hold the
    mark alone.
    """

    header: list[int]
    segments: list[list[int]]
    sections: list[list[int]]
    segment: list[int]
    section: list[int]


def put_at_end(path: Path, mark: bytes, pieces: Sequence[bytes | memoryview]) -> bool:
    """Write the pieces, each aligned, where the mark is; whether that can be: a linker may give the
    mark no segment of its own, or not the last one.
    """
    if not mark:
        return False
    with opened(path, "r+b") as file:
        found = _read(file, mark)
        if found is not None:
            _write(file, found, pieces)
    return found is not None


def _read(file: BinaryIO, mark: bytes) -> _Linked | None:
    start = file.read(_HEADER.size)
    if len(start) < _HEADER.size or not start.startswith(_STARTS):
        return None
    header = list(_HEADER.unpack(start))
    segments = _rows(file, header[5], header[10], _SEGMENT)
    sections = _rows(file, header[6], header[12], _SECTION)
    last = max((s for s in segments if s[0] == _LOAD), key=lambda s: s[3])  # by address
    _, _, place, address, _, held, size, _ = last
    file.seek(place)
    if (held, size) != (len(mark), len(mark)) or file.read(held) != mark:
        return None
    holding = [s for s in sections if s[3:6] == [address, place, held]]
    if len(holding) != 1 or max(place, *(s[2] for s in segments)) > place or header[6] < place:
        return None
    return _Linked(header, segments, sections, last, *holding)


def _rows(file: BinaryIO, start: int, count: int, form: struct.Struct) -> list[list[int]]:
    file.seek(start)
    return [list(row) for row in form.iter_unpack(file.read(min(count * form.size, _LONGEST)))]


def _write(file: BinaryIO, found: _Linked, pieces: Sequence[bytes | memoryview]) -> None:
    """The file as if the linker had had the pieces: `strip` would write the same headers."""
    _, _, _, _, place, mark, *_ = found.section
    file.seek(place + mark)
    rest = file.read()
    file.seek(place)
    file.writelines(aligned(pieces))
    size = file.tell() - place
    file.write(rest)
    found.segment[5:7], found.section[5] = [size, size], size
    for section in (s for s in found.sections if s[4] > place):
        section[4] += size - mark
    found.header[6] += size - mark
    for place, rows, form in (
        (0, [found.header], _HEADER),
        (found.header[5], found.segments, _SEGMENT),
        (found.header[6], found.sections, _SECTION),
    ):
        file.seek(place)
        file.write(b"".join(form.pack(*row) for row in rows))


def aligned(pieces: Sequence[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Each, and what is between it and the next."""
    for piece in pieces:
        yield piece
        yield bytes(up(len(piece)) - len(piece))
