"""The headers of an ELF file: how long it is, what of it is loaded, and its notes.

Read by hand: of a package such as pyelftools this would be two functions, and it trusts the sizes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

MAGIC = b"\x7fELF"
_LOAD, _NOTE = 1, 4  # types of segments
_LONGEST = 64 << 20  # bytes of notes


class Cut(ValueError):
    """The file ends before what its headers speak of."""

    def __init__(self, expected: int, least: bool = False) -> None:
        super().__init__(expected)
        self.expected, self.least = expected, least


@dataclass(frozen=True)
class Note:
    """An owner's note: its type, and where its content lies."""

    owner: bytes
    kind: int
    place: range


@dataclass(frozen=True)
class Image:
    """An ELF file; places are ranges of its bytes.

    headers   its header and those of the segments
    loaded    what of the file is mapped
    sections  in the header, where the sections are: nothing of a process needs them, and `strip`
              writes them anew
    """

    headers: tuple[range, ...]
    loaded: tuple[range, ...]
    sections: tuple[range, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class _Form:
    """Of 32 or 64 bits: the header after its first 16 bytes; a segment, and which of its fields are
    type, place, size in the file and alignment; the fields of the header about sections.
    """

    header: str
    segment: str
    fields: tuple[int, int, int, int]
    sections: tuple[range, ...]


_FORMS = {
    1: _Form("HHIIIIIHHHHHH", "8I", (0, 1, 4, 7), (range(32, 36), range(46, 52))),
    2: _Form("HHIQQQIHHHHHH", "IIQQQQQQ", (0, 2, 5, 7), (range(40, 48), range(58, 64))),
}
_ORDERS = {1: "<", 2: ">"}


def read_image(file: BinaryIO, length: int) -> Image | None:
    """The headers of a file of so many bytes; None where it is no ELF.

    Raises Cut where the file is shorter than they say, ValueError where they say what cannot be.
    """
    start = _bytes(file, range(min(16, length)))
    if not start.startswith(MAGIC[: len(start)]):
        return None
    if len(start) < 16:
        raise Cut(64, least=True)
    form, order = _FORMS.get(start[4]), _ORDERS.get(start[5])
    if form is None or order is None:
        return None
    header = range(16 + struct.calcsize(order + form.header))
    if length < len(header):
        raise Cut(len(header), least=True)
    fields = struct.unpack_from(order + form.header, _bytes(file, header), 16)
    return _image(file, length, form, order, fields)


def _image(file: BinaryIO, length: int, form: _Form, order: str, fields: tuple[int, ...]) -> Image:
    size = struct.calcsize(order + form.segment)
    _, _, _, _, table, sections, _, _, each, count, section, section_count, _ = fields
    places = range(table, table + size * count)
    end = max(places.stop, sections + section * section_count)
    if length < end:
        raise Cut(end)
    if count and each != size:
        raise ValueError(f"its header says {each} bytes for a segment; expected {size}")
    found = list(struct.iter_unpack(order + form.segment, _bytes(file, places)))
    kind, at, held, align = form.fields
    segments = [(s[kind], range(s[at], s[at] + s[held]), s[align]) for s in found]
    if length < (end := max([end, *(place.stop for _, place, _ in segments if place)])):
        raise Cut(end)
    notes = [n for s in segments if s[0] == _NOTE for n in _notes(file, s[1], s[2], order)]
    loaded = tuple(place for type_, place, _ in segments if type_ == _LOAD)
    header = range(16 + struct.calcsize(order + form.header))
    return Image((header, places), loaded, form.sections, tuple(notes))


def _notes(file: BinaryIO, place: range, align: int, order: str) -> Iterator[Note]:
    """Sizes of name and content, the type, the name, the content; each aligned."""
    if len(place) > _LONGEST:
        raise ValueError(f"its notes have {len(place)} bytes; expected at most {_LONGEST}")
    data, at, step = _bytes(file, place), 0, 8 if align == 8 else 4
    while at + 12 <= len(data):
        name, content, kind = struct.unpack_from(order + "III", data, at)
        owner, begin = data[at + 12 : at + 12 + name], at + _up(12 + name, step)
        if begin + content > len(data):
            return  # of another tool: not ours to judge
        inside = range(place.start + begin, place.start + begin + content)
        yield Note(owner.rstrip(b"\0"), kind, inside)
        at = begin + _up(content, step)


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _bytes(file: BinaryIO, place: range) -> bytes:
    file.seek(place.start)
    return file.read(len(place))
