"""What tuning is worth: hand schedules, the same tuned, and MetaSchedule's own space from scratch.

    python benchmarks/tuning.py --records build/tuning [--trials 64] [--json FILE] [--mcpu CPU]
        [workload ...]

Workloads are those of `python -m selfbyoc bench` by the beginning of their names; default: five
composites and GoogLeNet. Records are kept by workload, so that a second run goes on. In the end the
three builds of a workload are timed in turns, in a process that has searched nothing: after a long
search one call of GoogLeNet took 7.3 ms, and 4.9 in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import selfbyoc
from selfbyoc.codegen.records.record import CHOSEN, FILE, MEASURED, Record, append, read
from selfbyoc.commands.bench.suite import suite
from selfbyoc.commands.bench.workload import Workload, inputs_of
from selfbyoc.machine import host
from selfbyoc.models.onnx_model import import_onnx
from selfbyoc.runtime.timing import latency

FIVE = (
    "conv2d-relu-conv2d-relu", "inverted residual 24x56x56", "attention 12x128",
    "dense-gelu-dense 128x768", "inception 3a",
)  # fmt: skip
SPACES = ("own", "metaschedule")


@dataclass(frozen=True)
class Row:
    """Milliseconds a call of the three builds, and what the two searches took."""

    workload: str
    tasks: int
    hand: float
    tuned: float
    metaschedule: float
    seconds: Mapping[str, float]  # of this run, by space
    trials: Mapping[str, int]
    wrong: int  # of MetaSchedule's candidates: they compute something else


def measured(
    workload: Workload, target: Any, records: Path, trials: int, spaces: Sequence[str]
) -> Row:
    """Search what is not searched yet, then time the builds against each other."""
    model = workload.model()
    mod = import_onnx(model)
    folders = {space: records / workload.name.replace(" ", "-") / space for space in SPACES}
    seconds, counts = dict.fromkeys(SPACES, 0.0), dict.fromkeys(SPACES, 0)
    tasks = wrong = 0
    for space in spaces:
        start = time.perf_counter()
        found = selfbyoc.tune(mod, target, trials, folders[space], space=space)
        seconds[space], tasks = time.perf_counter() - start, len(found.outcomes)
        counts[space] = sum(outcome.trials for outcome in found.outcomes)
        wrong += sum(outcome.wrong for outcome in found.outcomes)
    found_in = {s: folders[s] if s == "own" else _from_scratch(folders[s]) for s in spaces}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        times = fresh.submit(timed, model, target, found_in).result()
    hand, own, scratch = (times.get(n, float("nan")) for n in ("hand", *SPACES))
    return Row(workload.name, tasks, hand, own, scratch, seconds, counts, wrong)


def timed(model: Any, target: Any, folders: Mapping[str, Path]) -> dict[str, float]:
    """Milliseconds a call of the build without records, and with those of each folder."""
    mod = import_onnx(model)
    libraries = {"hand": selfbyoc.build(mod, target)}
    for space, folder in folders.items():
        with selfbyoc.apply_records(folder):
            libraries[space] = selfbyoc.build(mod, target)
    calls = {n: library.prepared(**inputs_of(model)) for n, library in libraries.items()}
    return {n: found.milliseconds for n, found in latency(calls, windows=51).items()}


def _from_scratch(folder: Path) -> Path:
    """The best of MetaSchedule's own candidates for each task, the hand schedule not among them."""
    best: dict[str, Record] = {}
    found = [r for r in read(folder) if r.trace is not None and r.status == MEASURED]
    for record in sorted(found, key=lambda r: r.seconds or math.inf):
        best.setdefault(record.workload, record)
    alone = folder / "from-scratch"
    alone.mkdir(exist_ok=True)
    (alone / FILE).write_text("")
    for record in best.values():
        append(alone, replace(record, status=CHOSEN))
    return alone


def table(rows: Sequence[Row]) -> Table:
    """For people."""
    found = Table(title="milliseconds a call, and seconds of searching")
    names = ("workload", "tasks", "hand", "tuned", "gain", "MetaSchedule", "by hand", "wrong")
    for name in (*names, "s tuned", "s MetaSchedule"):
        found.add_column(name, justify="left" if name == "workload" else "right")
    for r in rows:
        found.add_row(
            r.workload, str(r.tasks), f"{r.hand:.3f}", f"{r.tuned:.3f}", f"{r.hand / r.tuned:.2f}",
            f"{r.metaschedule:.3f}", f"{r.metaschedule / r.hand:.1f}",
            f"{r.wrong} of {r.trials['metaschedule']}",
            *(f"{r.seconds[space]:.0f}" for space in SPACES),
        )  # fmt: skip
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("workload", nargs="*", default=[*FIVE, "GoogLeNet"])
    parser.add_argument("--records", type=Path, required=True, metavar="DIR")
    parser.add_argument("--trials", type=int, default=64, help="of each task")
    parser.add_argument("--space", action="append", choices=SPACES, help="default: both")
    parser.add_argument("--mcpu", help="another CPU, whose code this one runs")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    target = {"kind": "llvm", "mcpu": asked.mcpu or host.cpu(), "num-cores": host.cores()}
    console, rows = Console(width=130), []
    for workload in suite():
        if workload.name.startswith(tuple(asked.workload)):
            spaces = asked.space or SPACES
            rows.append(measured(workload, target, asked.records, asked.trials, spaces))
            console.print(table(rows))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(r) for r in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
