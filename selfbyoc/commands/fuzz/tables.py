"""Runs of the fuzzer, read from the files that `fuzz --json` writes, as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.files import read_text
from ...common.structured import read
from ...errors import InputError
from ..bounds.tables import short_cpu

_COLUMNS = (
    "generation, target", "runs", "graphs", "builds", "by NumPy", "by ONNX Runtime",
    "by TVM alone", "twins", "twins built", "findings", "graphs an hour",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run's plan and figures, as they are in its file."""

    generation: str
    target: str
    onnx: bool
    seed: int
    seconds: float
    graphs_an_hour: int
    counts: Mapping[str, int]
    matches: Mapping[str, int]
    alike: Mapping[str, int]
    findings: tuple[Any, ...]
    notes: tuple[Any, ...]
    like: tuple[str, ...] = ()
    opt_level: int | None = None


def read_run(path: Path) -> Run:
    """A file of `fuzz --json`. Raises InputError."""
    try:
        return read(Run, read_text(path))
    except ValueError as err:
        raise InputError(f"{path} is no run of the fuzzer: {err}") from err


def markdown(runs: Sequence[Run]) -> str:
    """A row for each generation, target and way of writing, and one for all."""
    groups: dict[str, list[Run]] = {}
    for run in sorted(runs, key=_name):
        groups.setdefault(_name(run), []).append(run)
    rows = [_row(name, group) for name, group in groups.items()] + [_row("all", runs)]
    head = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def _name(run: Run) -> str:
    said = ("opt-level=0", '"opt-level":0', '"opt-level": 0')
    hasty = run.opt_level == 0 or any(text in run.target for text in said)
    written = ", `--like`" if run.like else ", `--onnx`" if run.onnx else ""
    notes = (", opt-level 0" if hasty else "") + written
    return f"{run.generation}, `{short_cpu(run.target)}`{notes}"


def _row(name: str, runs: Sequence[Run]) -> list[str]:
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.counts)
    graphs, seconds = counts["graphs"], sum(run.seconds for run in runs)
    figures = [len(runs), *(counts[column] for column in _COLUMNS[2:9])]
    figures += [sum(sum(run.alike.values()) for run in runs), round(3600 * graphs / seconds)]
    return [name, *(f"{figure:,}" for figure in figures)]
