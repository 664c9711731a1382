"""`selfbyoc bench MODEL.onnx --start`: what a process takes until its first answer, and in memory.

A process of its own for each, in turns: what one imported, mapped or allocated, no other has.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ...common.files import write_text
from ...common.optional import extra
from ...common.structured import read
from ...errors import InputError
from ..console import PlainTable
from ..progress import step
from .inputs import inputs_of
from .process import environment
from .records import OURS
from .setting import Setting
from .workload import Workload

TURNS = 5  # processes of everybody
_LIMIT = 600.0  # seconds

# Between the marks of time: imports, loading, one call.
_PROGRAM = """
import json, sys, time
began = time.perf_counter()
import numpy
{imported}
marks = [time.perf_counter()]
path, threads = sys.argv[1], int(sys.argv[3])
inputs = dict(numpy.load(sys.argv[2]))
marks.append(time.perf_counter())
{loaded}
marks.append(time.perf_counter())
{called}
marks.append(time.perf_counter())
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
memory = [int(status[name].split()[0]) / 1e3 * 1.024 for name in ("VmRSS", "VmHWM")]
print(json.dumps([marks[0] - began, marks[2] - marks[1], marks[3] - marks[2], *memory]))
"""


@dataclass(frozen=True)
class Program:
    """How one is imported, loaded and called: lines of Python."""

    imported: str
    loaded: str
    called: str

    @property
    def text(self) -> str:
        """The whole program."""
        return _PROGRAM.format(**asdict(self))


PROGRAMS = {
    OURS: Program("import selfbyoc", "model = selfbyoc.load(path)", "model(inputs)"),
    "onnxruntime": Program(
        "import onnxruntime",
        "options = onnxruntime.SessionOptions()\n"
        "options.intra_op_num_threads = threads\n"
        "model = onnxruntime.InferenceSession(path, options, ['CPUExecutionProvider'])",
        "model.run(None, inputs)",
    ),
    "openvino": Program(
        "import openvino",
        "settings = {'INFERENCE_NUM_THREADS': threads, 'INFERENCE_PRECISION_HINT': 'f32', "
        "'PERFORMANCE_HINT': 'LATENCY'}\n"
        "model = openvino.Core().compile_model(path, 'CPU', settings)",
        "request = model.create_infer_request(); request.infer(inputs)",
    ),
}


@dataclass(frozen=True)
class Start:
    """Medians over processes: seconds of each step, and of a process from its start to its end;
    MB (a million bytes) that are resident after the first call, their peak, and those of the file.
    """

    imports: float
    loads: float
    calls: float
    whole: float
    resident: float
    peak: float
    file: float


@dataclass(frozen=True)
class Starts:
    """A model's: who, or why not; seconds that `compile` takes with an empty cache, and with a full
    one.
    """

    model: str
    found: dict[str, Start]
    failed: dict[str, str]
    compiled: tuple[float, float]


def show_starts(
    console: Console, workloads: Sequence[Workload], setting: Setting, turns: int,
    written: Path | None,
) -> bool:  # fmt: skip
    """Measure and print them; whether ours ran."""
    if not workloads:
        raise InputError("--start is of a MODEL.onnx, and there is none")
    with step("timing starts") as says:
        starts = [starts_of(w, setting, says, turns) for w in workloads]
    for each in starts:
        console.print("", _table(each))
        empty, full = each.compiled
        console.print(f"compile: {empty:.1f} s with an empty cache, {full:.1f} s with a full one")
        for name, why in each.failed.items():
            console.print(f"{name}: {why}", markup=False, soft_wrap=True)
    if written is not None:
        write_text(written, json.dumps([asdict(each) for each in starts], indent=1))
    return all(OURS in each.found for each in starts)


def read_starts(path: Path) -> list[Starts]:
    """What `--json` wrote."""
    return [read(Starts, json.dumps(each)) for each in json.loads(path.read_text("utf-8"))]


def starts_of(
    workload: Workload, setting: Setting, says: Callable[[str], object], turns: int
) -> Starts:
    """Everybody's starts with a model, one after the other, `turns` times."""
    onnx, model = extra("onnx"), workload.model()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, library, inputs = (folder / n for n in ("model.onnx", "model.so", "inputs.npz"))
        onnx.save(model, file)
        np.savez(inputs, allow_pickle=False, **inputs_of(model))
        says(f"{workload.name}: compile it twice")
        compiled = tuple(_compiled(file, library, folder / "cache") for _ in range(2))
        files = {OURS: library}
        runs: dict[str, list[list[float]]] = {name: [] for name in PROGRAMS}
        failed: dict[str, str] = {}
        for turn in range(turns):
            says(f"{workload.name}: turn {turn + 1} of {turns}")
            _turn(files, file, inputs, setting, runs, failed)
        found = {
            name: _median(rows, files.get(name, file))
            for name, rows in runs.items()
            if name not in failed
        }
    return Starts(workload.name, found, failed, (compiled[0], compiled[1]))


def _turn(
    files: Mapping[str, Path], file: Path, inputs: Path, setting: Setting,
    runs: dict[str, list[list[float]]], failed: dict[str, str],
) -> None:  # fmt: skip
    for name, program in PROGRAMS.items():
        if name in failed:
            continue
        command = [sys.executable, "-c", program.text, str(files.get(name, file)), str(inputs),
                   str(setting.threads)]  # fmt: skip
        began = time.perf_counter()
        done = subprocess.run(command, env=environment(setting.threads), capture_output=True,
                              text=True, timeout=_LIMIT)  # fmt: skip
        seconds = time.perf_counter() - began
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"died with status {done.returncode}"]
            failed[name] = lines[-1]
        else:
            imports, loads, calls, *memory = json.loads(done.stdout.splitlines()[-1])
            runs[name].append([imports, loads, calls, seconds, *memory])


def _median(rows: Sequence[Sequence[float]], file: Path) -> Start:
    medians = (statistics.median(column) for column in zip(*rows, strict=True))
    imports, loads, calls, whole, resident, peak = medians
    return Start(imports, loads, calls, whole, resident, peak, file.stat().st_size / 1e6)


def _compiled(model: Path, library: Path, cache: Path) -> float:
    """Seconds of `selfbyoc compile`, the start of Python included."""
    command = [sys.executable, "-m", "selfbyoc", "compile", str(model), "-o", str(library)]
    env = {**os.environ, "SELFBYOC_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    began = time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=_LIMIT)
    if done.returncode:
        raise InputError(f"compile: {done.stderr.strip()}")
    return time.perf_counter() - began


def _table(starts: Starts) -> Table:
    table = PlainTable(title=f"\n{starts.model}", title_justify="left", show_edge=False)
    table.add_column("")
    for header in ("import, s", "load, s", "first call, s", "whole process, s", "resident, MB",
                   "peak, MB", "file, MB"):  # fmt: skip
        table.add_column(header, justify="right")
    for name, start in starts.found.items():
        *seconds, resident, peak, file = asdict(start).values()
        numbers = [*(f"{s:.3f}" for s in seconds), f"{resident:.0f}", f"{peak:.0f}", f"{file:.1f}"]
        table.add_row(name, *numbers)
    return table
