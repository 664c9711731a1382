"""What an exported library says of itself, as a note in the file: what it was built for, its inputs
and outputs, versions, the report.

It is read from the file's bytes: a library for another architecture cannot be loaded, and one for
another CPU should not be.
"""

from __future__ import annotations

import json
import mmap
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import __version__, structured
from .._tvm import GENERATION, make_target, target_dict, tvm
from ..errors import InputError, TargetError, one_line
from ..partition.report import Report
from .signature import Tensor
from .sizes import Size

_BEGIN = b'selfbyoc.note={"'  # compiled; the source below has a backslash before the quote
_LONGEST = 64 << 20  # the report of SqueezeNet, 93 ops, has 0.2 MB


@dataclass(frozen=True)
class Note:
    """Empty where the file has none: another tool's export."""

    target: Any = None  # a Target
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    report: Report | None = None
    python: tuple[str, ...] = ()  # functions of TVM's Python package that it calls
    weights: str = "float32"  # as the file holds those of float32
    index_bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)
    memory: int | None = None


@dataclass(frozen=True)
class _Written:
    """A note as JSON has it."""

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


def versions() -> dict[str, str]:
    """What builds here."""
    llvm = tvm.target.codegen.llvm_version_major()
    return {
        "selfbyoc": __version__, "tvm": tvm.__version__, "generation": GENERATION,
        "llvm": str(llvm),
    }  # fmt: skip


def write_note(folder: Path, note: Note) -> str:
    """A source file to link into the library, C and C++ alike; -> its path."""
    target = None if note.target is None else target_dict(note.target)
    report = None if note.report is None else note.report.data()
    data = asdict(
        _Written(
            target,
            note.inputs,
            note.outputs,
            note.versions,
            report,
            note.python,
            note.weights,
            note.index_bounds,
            note.sizes,
            note.memory,
        )
    )
    text = _BEGIN.decode()[:-2] + json.dumps(data)
    # What JSON escapes in a string, C does in the same way; `??/` would be a backslash in old C.
    quoted = json.dumps(text).replace("?", "\\?")
    path = folder / "selfbyoc_note.c"
    path.write_text(
        f"static const char selfbyoc_note[] __attribute__((used)) = {quoted};\n", encoding="utf-8"
    )
    return str(path)


def read_note(path: Path) -> Note:
    """What a library says of itself. Raises TargetError where its note is damaged, InputError where
    the file cannot be read.
    """
    found = _text(path)
    if not found:
        return Note()
    try:
        written = structured.read(_Written, found.decode())
        note = Note(
            inputs=written.inputs, outputs=written.outputs, versions=written.versions,
            python=written.python, weights=written.weights, index_bounds=written.index_bounds,
            sizes=written.sizes, memory=written.memory,
        )  # fmt: skip
        if written.report is not None:
            note = replace(note, report=Report.from_data(written.report))
        if written.target is not None:
            note = replace(note, target=make_target(written.target))
    except Exception as err:  # TVM raises plain errors of many kinds for what is no target
        raise TargetError(f"{path}: its note cannot be read: {one_line(err)}") from err
    return note


def _text(path: Path) -> bytes:
    """The JSON of the note, or nothing."""
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                return b""
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                start = data.find(_BEGIN)
                if start < 0:
                    return b""
                start += len(_BEGIN) - 2
                return data[start : data.find(b"\0", start, start + _LONGEST)]
    except (OSError, ValueError) as err:  # ValueError: a path with NUL in it
        why = (err.strerror if isinstance(err, OSError) else None) or str(err)
        raise InputError(f"{path} cannot be read: {why}") from err
