"""All cells judged, each in a worker process; a crash is one cell's outcome."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .cells import Cell, Outcome

WORKER = Path(__file__).parent / "worker.py"
MANY = 100  # cells a process: TVM's memory grows with every build
SECONDS = 300  # a cell

Told = dict[str, Any]


def judged(
    cells: Sequence[Cell], watch: Callable[[Cell, Outcome], None] = lambda cell, outcome: None
) -> dict[Cell, Outcome]:
    """What each cell gave, and TVM alone where ours is not right."""
    found: dict[Cell, Outcome] = {}
    for start in range(0, len(cells), MANY):
        ours = dict(_worked(cells[start : start + MANY], False))
        asked = [cell for cell, told in ours.items() if told["kind"] != "right"]
        alone = dict(_worked(asked, True))
        for cell, told in ours.items():
            found[cell] = _outcome(told, alone.get(cell))
            watch(cell, found[cell])
    return found


def _outcome(ours: Told, alone: Told | None) -> Outcome:
    outcome = Outcome(ours["kind"], ours["says"])
    if alone is None:
        return outcome
    return replace(outcome, alone=alone["kind"], alone_says=alone["says"])


def _worked(cells: Sequence[Cell], is_alone: bool) -> Iterator[tuple[Cell, Told]]:
    """Cells in worker processes, a new one after each crash."""
    left = list(cells)
    while left:
        told, ended = _process(left, is_alone)
        yield from zip(left, told, strict=False)
        if len(told) < len(left):
            yield left[len(told)], {"kind": "crash", "says": ended}
        left = left[len(told) + 1 :]


def _process(cells: Sequence[Cell], is_alone: bool) -> tuple[list[Told], str]:
    """What one process told of cells before it ended, and how it ended."""
    text = "\n".join(json.dumps({**asdict(cell), "alone": is_alone}) for cell in cells)
    env = {**os.environ, "SELFBYOC_CACHE": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(
            [sys.executable, str(WORKER)], input=text, env=env, capture_output=True, text=True,
            timeout=SECONDS * len(cells), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        output = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        return _told(output), f"did not end in {SECONDS * len(cells)} s"
    if done.returncode > 0:  # a crash is a signal
        raise RuntimeError(f"{WORKER.name}: {done.stderr.strip()[-1000:]}")
    told = _told(done.stdout)
    return told, signal.Signals(-done.returncode).name if done.returncode else ""


def _told(output: str) -> list[Told]:
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [line for line in lines if "kind" in line]
