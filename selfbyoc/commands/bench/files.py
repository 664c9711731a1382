"""`selfbyoc bench` of what is no ONNX file: libraries, which are timed as they are, and models that
TVM alone can build as well. All in this process, in turns; no other runtime reads these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ...errors import InputError, did_you_mean
from ...models.generation import tvm_road
from ...models.shapes import Shape, parse_shapes
from ...runtime.build import build
from ...runtime.library import Library
from ...runtime.loading import load
from ...runtime.timing import Latency, latency
from ...tvm.types import Executable, IRModule, Target
from ..console import PlainTable
from ..model.run import made, threads_text
from ..model_file import LIBRARIES, composites_in, imported, naming
from ..open_inputs import shapes_at
from ..progress import step
from .setting import make_setting
from .tables import milliseconds

ONNX_ONLY = ("peers", "json", "resume", "roofline", "builds", "lengths", "input", "where", "start")
WINDOWS, QUICK, BUDGET = 31, 5, 8.0  # of 20 ms; seconds each


@dataclass(frozen=True)
class Files:
    """What the command line asks of them."""

    paths: Sequence[Path]
    shape: Sequence[str] = ()
    target: str | None = None
    threads: int | None = None
    composites: Sequence[Path | str] = ()
    quick: bool = False
    size: Sequence[str] = ()
    requantize: str = "stepwise"


Run = Callable[[], object]


def is_onnx(path: Path) -> bool:
    """Whether the benchmark of models reads it, and not this one."""
    return path.suffix.lower() not in (*LIBRARIES, ".pt2", ".json")


def time_files(console: Console, asked: Files) -> None:
    """Load or build each, time them in turns, and print a table."""
    if asked.threads is not None:
        make_setting(asked.threads)
        os.environ["TVM_NUM_THREADS"] = str(asked.threads)  # TVM reads it at the first call
    shapes = parse_shapes(asked.shape)
    runs: dict[tuple[str, str], Run] = {}
    known: set[str] = set()
    for path in asked.paths:
        found, library = _runs(console, path, asked, shapes)
        runs |= {(path.name, who): run for who, run in found.items()}
        known |= {name for name, _, _ in library.inputs}
    for name in shapes:
        if name not in known:
            near = did_you_mean(name, sorted(known))
            raise InputError(f"--shape: no input {name!r}; expected {', '.join(known)}{near}")
    with step("timing"):
        keyed = {str(n): run for n, run in enumerate(runs.values())}
        times = latency(keyed, QUICK if asked.quick else WINDOWS, BUDGET).values()
    console.print(_table(dict(zip(runs, times, strict=True))))
    busy = "" if all(t.quiet for t in times) else "; * other programs ran all the time"
    console.print(f"on {threads_text()}, windows of 20 ms in turns{busy}", soft_wrap=True)


def _runs(
    console: Console, path: Path, asked: Files, shapes: Mapping[str, Shape]
) -> tuple[dict[str, Run], Library]:
    """Who can run a file, and ours."""
    if path.suffix.lower() in LIBRARIES:
        for option in ("target", "composites", "requantize"):
            if getattr(asked, option) not in (None, (), [], Files.requantize):
                raise InputError(f"--{option}: it is for a model; {path.name} is built already")
        with step(f"loading {path.name}"):
            library = load(path)
        given = _inputs(library, asked, shapes)
        return {"selfbyoc": library.prepared(given)}, library
    target = make_setting(asked.threads, asked.target).tvm_target()
    with step(f"reading {path.name}"):
        mod = imported(path, ())
    with step(f"building {path.name}"), naming(path):
        mine = composites_in(asked.composites)
        library = build(mod, target, composites=mine, requantize=asked.requantize)
    with step(f"building {path.name} with TVM alone"), naming(path):
        alone = Library(_alone(mod, target), library.inputs, outputs=library.outputs)
    given = _inputs(library, asked, shapes)
    return {"selfbyoc": library.prepared(given), "TVM alone": alone.prepared(given)}, library


def _alone(mod: IRModule, target: Target) -> Executable:
    return tvm_road.default_build(mod, target)


def _inputs(library: Library, asked: Files, shapes: Mapping[str, Shape]) -> dict[str, np.ndarray]:
    shapes = {**shapes_at(library, asked.size, ()), **shapes}
    rng = np.random.default_rng(0)
    return {t[0]: made(rng, t, shapes.get(t[0])) for t in library.inputs}


def _table(times: Mapping[tuple[str, str], Latency]) -> Table:
    table = PlainTable(show_edge=False, pad_edge=False)
    table.add_column("file", overflow="fold")
    table.add_column("by")
    for name in ("ms a call", "lowest"):
        table.add_column(name, justify="right", no_wrap=True)
    for (file, who), time in times.items():
        mark = "" if time.quiet else "*"
        table.add_row(file, who, milliseconds(time.milliseconds) + mark, milliseconds(time.lowest))
    return table
