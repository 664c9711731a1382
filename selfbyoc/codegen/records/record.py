"""Records of tuning: one JSON object a line, appended as soon as a candidate was measured."""

from __future__ import annotations

import errno
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ...common.files import expanded
from ...common.trusted import EVERYBODY, Untrusted, open_to_append, read_file
from ...errors import InputError, RecordWarning
from ...tvm.types import Trace
from .data import parsed

FILE = "records.jsonl"
LARGEST = 256 << 20  # bytes of a file; a record has some 2000
# measured: right, with its time; failed: it could not be built or run; wrong: it computed something
# else; chosen: the fastest in the last comparison.
MEASURED, FAILED, WRONG, CHOSEN = "measured", "failed", "wrong", "chosen"
STATUSES = (MEASURED, FAILED, WRONG, CHOSEN)
GAIN = 0.97  # without a last comparison, less than 3% may be chance


@dataclass(frozen=True)
class Place:
    """Where a record holds: TVM's generation, the target as data, and the cores it runs on."""

    generation: str
    target: Mapping[str, Any]
    cores: int

    def __str__(self) -> str:
        named = {n: v for n, v in self.target.items() if n in ("kind", "mcpu", "mtriple", "mattr")}
        options = " ".join(f"-{n}={v}" for n, v in named.items() if n != "kind")
        kind = self.target.get("kind", "?")
        return (
            f"{' '.join(filter(None, [str(kind), options]))}, {self.cores} cores, {self.generation}"
        )


@dataclass(frozen=True)
class Record:
    """One candidate of one task: what was decided, and what it was worth.

    workload    key of the composite, its ops and shapes
    decisions   by name, of the composite's own schedule; empty: all defaults
    trace       of MetaSchedule's own space, as data; None: the composite's own schedule
    code        digest of the scheduled function, by which a change of it is noticed
    seconds     a call; default_seconds: of the default decisions, measured beside it
    """

    workload: str
    composite: str
    about: str
    place: Place
    status: str
    decisions: Mapping[str, Any] = field(default_factory=dict)
    trace: Trace = None
    code: str = ""
    seconds: float | None = None
    default_seconds: float | None = None
    error: str = ""
    made_by: Mapping[str, str] = field(default_factory=dict)  # versions, CPU, date

    @property
    def ratio(self) -> float:
        """Its time by the default's; infinite for what is of no use."""
        if self.status in (FAILED, WRONG) or not self.seconds or not self.default_seconds:
            return float("inf")
        return self.seconds / self.default_seconds

    @property
    def is_default(self) -> bool:
        """Whether it is the hand-picked decision."""
        return not self.decisions and self.trace is None

    def __str__(self) -> str:
        return f"{self.about} for {self.place}"

    def to_json(self) -> str:
        """One line; `from_json` is the inverse."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Read what `to_json` wrote. Raises ValueError for anything else."""
        data = parsed(line, [f.name for f in fields(cls)])
        found = cls(**{**data, "place": Place(**data["place"])})
        if found.status not in STATUSES:
            raise ValueError(f"status {found.status!r}")
        return found


def append(folder: Path, record: Record) -> None:
    """Write a record down, whole or not at all, whoever else writes to the file. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    line = record.to_json().encode() + b"\n"
    handle = open_to_append(folder / FILE)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":  # a run was killed while writing
            line = b"\n" + line
        written = os.write(handle, line)
        if written < len(line):
            raise OSError(errno.ENOSPC, f"{folder / FILE}: only {written} bytes were written")
        os.fsync(handle)
    finally:
        os.close(handle)


def begin(folder: Path) -> None:
    """Make the folder and its file. Raises OSError where records cannot be written there."""
    folder.mkdir(parents=True, exist_ok=True)
    os.close(open_to_append(folder / FILE))


def read(place: str | Path) -> list[Record]:
    """The records of a folder, or of one file; a RecordWarning names each line that is none, or a
    file that is not trusted: of another user, a link in the folder, a pipe.

    Raises InputError where there is no such folder or file.
    """
    path = expanded(place)
    path = path / FILE if path.is_dir() else path.resolve()  # whoever names a link means it
    try:
        data = read_file(path, LARGEST, writers=EVERYBODY)
    except (FileNotFoundError, NotADirectoryError) as err:
        raise InputError(f"records: there is no {path}") from err
    except OSError as err:
        _warn(f"{path} is not read: {err if isinstance(err, Untrusted) else err.strerror}")
        return []
    return list(_records(path, data.decode("utf-8", errors="replace")))


def _records(path: Path, text: str) -> Iterator[Record]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield Record.from_json(line)
        except ValueError as err:
            _warn(f"{path} line {number} is not read: {err}")


def _warn(text: str) -> None:
    warnings.warn(RecordWarning(text), stacklevel=5)


def best(records: Iterable[Record]) -> Record | None:
    """Of the records of one workload and place, the one to use: what the last comparison chose, or
    else the fastest, where it is clearly faster than the default.
    """
    usable = [r for r in records if r.ratio < float("inf")]
    chosen = [r for r in usable if r.status == CHOSEN]
    if chosen:
        return chosen[-1]
    fastest = min(usable, key=lambda r: r.ratio, default=None)
    if fastest is None or fastest.is_default or fastest.ratio <= GAIN:
        return fastest
    return next((r for r in usable if r.is_default), None)
