"""What one trial of a model found, and the file that keeps all of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

# How far a model can come; a trial that ends early ended in one of these.
STAGES = ("make", "export", "import", "truth", "partition", "build", "run", "compare")
RIGHT, WRONG, FAILED = "right", "wrong", "failed"
TIMEOUT, MEMORY, CRASH = "timeout", "memory", "crash"  # causes of a failure that nobody raised
# Whose fault a failure is.
MAKER, EXPORT, IMPORTER, TVM, OURS, LIMITS = (
    "the model's package", "torch.export", "TVM's importer", "TVM", "selfbyoc", "the limits",
)  # fmt: skip


@dataclass(frozen=True)
class Record:
    """One line of the file. Fields that were not reached, or not measured, are empty.

    error      largest, relative to the largest value of that output, against the truth
    theirs     the same of PyTorch itself in float32 (of ONNX Runtime, for a file)
    allowed    what is still taken for rounding
    live       how far another input changes the output; a dead network proves nothing
    processor  seconds of all threads, by stage: as good on a busy machine as on a quiet one
    seconds    by the clock, where the machine was quiet
    times      milliseconds a call by contender
    tried      the commit that was tried
    timed      the machine that it was timed on, and the commit
    facts      of a file: versions, bytes, shapes
    """

    key: str
    size: str
    outcome: str
    stage: str = ""
    fault: str = ""
    reason: str = ""
    op: str = ""
    error: float | None = None
    theirs: float | None = None
    allowed: float | None = None
    live: float | None = None
    ops: int = 0
    kernels: int = 0
    composites: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    fallbacks: list[str] = field(default_factory=list)
    processor: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    tried: str = ""
    timed: str = ""
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The part of the key before the name."""
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The part of the key after the family."""
        return self.key.rpartition("/")[2]

    def reached(self, stage: str) -> bool:
        """Whether it came through a stage."""
        return self.outcome != FAILED or STAGES.index(stage) < STAGES.index(self.stage)


def read_records(path: Path) -> dict[str, Record]:
    """The last record of each model. A line that a killed run left unfinished is dropped."""
    known = {f.name for f in fields(Record)}
    found: dict[str, Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            data: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        record = Record(**{name: value for name, value in data.items() if name in known})
        found[record.key] = record
    return found


def with_times_of(record: Record, before: Record | None) -> Record:
    """A record of an untimed run, with the times that an earlier run of the same size measured."""
    if before is None or before.size != record.size:
        return replace(record, seconds={})
    kept = {name: getattr(before, name) for name in ("seconds", "times", "skipped", "timed")}
    return replace(record, **kept)


def add_record(path: Path, record: Record) -> None:
    """Append one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {n: v for n, v in asdict(record).items() if v not in ("", None, {}, [])}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(data) + "\n")
