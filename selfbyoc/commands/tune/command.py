"""`python -m selfbyoc tune MODEL.onnx`: tune the kernels of a model, and show what came of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ...codegen.target import host_target
from ...common.files import write_text
from ...errors import InputError
from ...partition import check_target, partition_for_tefuse
from ...tuning.engine import tune
from ...tuning.progress import Outcome, Tuning
from ...tuning.tasks import extract_tasks
from ...tuning.tracker import Tracker
from ...tvm.types import IRModule, Target
from ..console import SafeConsole
from ..model_file import composites_in, imported, naming
from ..progress import step
from .progress import shown
from .tables import WIDTH, changed, gain_line, outcome_table, task_table


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    model: Path
    trials: int = 64
    records: Path = Path("records")
    seconds: float | None = None
    target: str | None = None
    space: str = "own"
    min_ops: int = 1
    include_simple_tasks: bool = False
    tracker: str | None = None
    key: str | None = None
    json: Path | None = None
    list: bool = False
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    composites: Sequence[Path | str] = ()


def show(console: Console, asked: Request) -> None:
    """List the tasks of an ONNX model, or tune them; a table at the end."""
    if not console.is_terminal:
        console = SafeConsole(file=console.file, width=WIDTH)
    target = check_target(asked.target) if asked.target else host_target()
    tracker = tracker_of(asked)
    with step(f"partitioning {asked.model.name}"):
        mod = _partitioned(asked, target)
    options: dict[str, Any] = {
        "include_simple_tasks": asked.include_simple_tasks,
        "min_ops": asked.min_ops,
    }
    tasks = extract_tasks(mod, target, **options)
    if asked.list or not tasks:
        console.print(task_table(tasks))
        _print_left_out(console, mod, target, len(tasks))
        return
    with shown(console) as progress:
        found = tune(
            mod, target, asked.trials, asked.records, **options, seconds=asked.seconds,
            space=asked.space, tracker=tracker, progress=progress,
        )  # fmt: skip
    console.print("", outcome_table(found.outcomes))
    use = f'with selfbyoc.apply_records("{asked.records}"): library = selfbyoc.build(mod)'
    for line in (
        f"\n{gain_line(found.outcomes)}; tuning took {found.seconds:.0f} s",
        f"Records: {asked.records}. Build with them: {use}",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if asked.json is not None:
        _write(asked.json, asked, target, found)


def tracker_of(asked: Request) -> Tracker | None:
    """The machines to measure on, or None: this one."""
    if asked.tracker is None:
        if asked.key is not None:
            raise InputError("--key: it names machines of a tracker; expected --tracker too")
        return None
    if asked.key is None:
        raise InputError("--tracker: expected --key too, the machines to measure on")
    return Tracker.parse(asked.tracker, asked.key)


def _partitioned(asked: Request, target: Target) -> IRModule:
    mod = imported(asked.model, asked.shape, asked.input)
    with naming(asked.model):
        return partition_for_tefuse(mod, target=target, composites=composites_in(asked.composites))


def _print_left_out(console: Console, mod: IRModule, target: Target, kept: int) -> None:
    every = extract_tasks(mod, target, include_simple_tasks=True)
    if len(every) > kept:
        text = f"{len(every) - kept} of {len(every)} tasks are left out: simple ones, or of few ops"
        console.print(f"\n{text} (--all, --min-ops)")


def _write(path: Path, asked: Request, target: Target, found: Tuning) -> None:
    data = {
        "model": asked.model.name,
        "target": str(target),
        "space": asked.space,
        "seconds": found.seconds,
        "outcomes": [_outcome(o) for o in found.outcomes],
    }
    write_text(path, json.dumps(data, indent=1) + "\n")


def _outcome(outcome: Outcome) -> dict[str, object]:
    task = outcome.task
    return {
        "task": str(task), "key": task.key, "weight": task.weight, "ops": task.ops,
        "roots": task.roots, "trials": outcome.trials, "failed": outcome.failed,
        "wrong": outcome.wrong, "default_seconds": outcome.default_seconds,
        "best_seconds": outcome.best_seconds, "changed": changed(task, outcome.record),
        "error": outcome.error,
    }  # fmt: skip
