"""What an exported library says of itself, as a note in the file: what it was built for, its inputs
and outputs, versions, the report. A second note has the checksum of the file (`whole.py`).

It is read from the file's bytes: a library for another architecture cannot be loaded, and one for
another CPU should not be.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..common import structured
from ..common.files import opened
from ..errors import DamagedFile, TargetError, one_line
from .integrity import GONE, OWNER, SEAL, TEXT, read_whole
from .signature import Tensor
from .sizes import IndexPlace, Size

_BEGIN = b'selfbyoc.note={"'  # compiled; the source below has a backslash before the quote
_LONGEST = 64 << 20  # the report of SqueezeNet, 93 ops, has 0.2 MB before it is packed
_AT_ONCE = 1 << 20  # bytes of a reading

# ELF's notes, which `strip` and `patchelf` keep: sizes of owner and content, the type, and these.
# The checksum comes first: in a file with zeros from somewhere on it is still there. Elsewhere the
# text is a string.
_SOURCE = """#ifdef __ELF__
__asm__(".pushsection .note.selfbyoc,\\"a\\",%%note\\n.balign 4\\n"
        ".4byte %(owner)d, 16, %(seal)d\\n.asciz \\"%(name)s\\"\\n.balign 4\\n.zero 16\\n"
        ".4byte %(owner)d, 2f - 1f, %(text)d\\n.asciz \\"%(name)s\\"\\n.balign 4\\n"
        "1: .incbin \\"%(file)s\\"\\n2: .balign 4\\n.popsection\\n");
#else
static const char selfbyoc_note[] __attribute__((used)) = %(quoted)s;
#endif
"""


@dataclass(frozen=True)
class Note:
    """What it says, as JSON has it. Empty where the file has none: another tool's export.

    target        as a dict, which a Target is made of
    architecture  of the code; features: of those that count, what it may use. None: not said
    report        of the partitioning, as data, or as `packed_report` makes a text of it
    python        functions of TVM's Python package that it calls
    weights       how the file holds those of float32
    is_sealed     another note has the checksum
    """

    target: dict[str, Any] | None = None
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    report: Any = None
    python: tuple[str, ...] = ()
    weights: str = "float32"
    index_bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)
    memory: int | None = None
    least_sizes: dict[str, int] = field(default_factory=dict)
    bounded_by: dict[str, str] = field(default_factory=dict)
    architecture: str = ""
    features: tuple[str, ...] | None = None
    is_sealed: bool = False
    index_places: tuple[IndexPlace, ...] = ()


def write_note(folder: Path, note: Note) -> str:
    """A source file to link into the library, C and C++ alike; -> its path."""
    told = {**vars(note), "report": packed_report(note.report), "is_sealed": True}
    text = _BEGIN.decode()[:-2] + json.dumps(told)
    content = folder / "selfbyoc_note.json"
    content.write_bytes(text.encode() + b"\0")
    names = {
        "owner": len(OWNER) + 1, "name": OWNER.decode(), "text": TEXT, "seal": SEAL,
        # What JSON escapes in a string, C does too; `??/` would be a backslash in old C.
        "quoted": json.dumps(text).replace("?", "\\?"),
        "file": for_assembler(content),
    }  # fmt: skip
    path = folder / "selfbyoc_note.c"
    path.write_text(_SOURCE % names, encoding="utf-8")
    return str(path)


def packed_report(data: Any) -> Any:
    """The data of a report in a tenth of the bytes, as a text: whoever loads a library seldom asks
    for it, and JSON has to be read to its end.
    """
    packed = base64.b85encode(zlib.compress(json.dumps(data).encode())).decode()
    return packed if len(packed) < len(json.dumps(data)) else data


def report_data(note: Note) -> Any:
    """The inverse, of a note that was read. Raises ValueError for what is none."""
    if not isinstance(note.report, str):
        return note.report  # a small one, or an earlier version's
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(base64.b85decode(note.report), _LONGEST)
    except zlib.error as err:
        raise ValueError(f"report: {err}") from err
    if not unpacking.eof:
        raise ValueError("report: it is cut off, or too long")
    return structured.loads(text.decode())


def for_assembler(path: Path) -> str:
    """A path as a string of the assembler's has it, inside of one of C's."""
    return _quoted(_quoted(str(path)))


def _quoted(text: str) -> str:
    """Inside of a string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def read_note(path: Path) -> Note:
    """What a library says of itself, once it is known to be whole. Raises DamagedFile where it is
    not, TargetError where its note is damaged, InputError where the file cannot be read.
    """
    told = read_whole(path)
    found = _scanned(path) if told.text is None else told.text[len(_BEGIN) - 2 :].rstrip(b"\0")
    if not found:
        return Note()
    try:
        note = structured.read(Note, found.decode())
    except ValueError as err:
        raise TargetError(f"{path}: its note cannot be read: {one_line(err)}") from err
    if note.is_sealed and told.is_elf and not told.is_sealed:  # nor was the text a note
        raise DamagedFile(f"{path} is damaged: {GONE}")
    return note


def _scanned(path: Path) -> bytes:
    """The JSON of a note wherever it is: files of ours before there was a checksum, and those of
    other systems. Nothing where there is none.
    """
    with opened(path) as file:
        before = b""
        while data := file.read(_AT_ONCE):
            data = before + data
            if (start := data.find(_BEGIN)) >= 0:
                file.seek(start - len(data), os.SEEK_CUR)
                return _text(file)
            before = data[1 - len(_BEGIN) :]
    return b""


def _text(file: BinaryIO) -> bytes:
    """What begins here, up to its zero."""
    found = bytearray()
    while b"\0" not in found[-_AT_ONCE:] and len(found) < _LONGEST:
        if not (data := file.read(_AT_ONCE)):
            break
        found += data
    return bytes(found[len(_BEGIN) - 2 :].partition(b"\0")[0])
