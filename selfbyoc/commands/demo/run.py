"""`python -m selfbyoc demo`: GoogLeNet, from ONNX to numbers and a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.markup import escape

from ...analysis.melting.report import melting
from ...codegen.target import host_target
from ...common.files import write_text
from ...common.optional import extra
from ...common.threads import count
from ...graph import OpGraph
from ...models.generation import tvm_road
from ...models.onnx_model import graph_of, import_onnx, light_model, random_inputs
from ...partition import partition_for_tefuse
from ...partition.report import Report, report
from ...runtime.build import build
from ...runtime.library import Library
from ...runtime.timing import Latency, latency
from ...runtime.tolerance import first_wrong, longest_reduction, tolerance
from ...tvm import GENERATION, tvm
from .. import tables
from ..page.page import Page, render
from ..summary import left

if TYPE_CHECKING:
    import onnx
    import onnxruntime

OURS, DEFAULT, ORT = "selfbyoc", "TVM's default build", "ONNX Runtime"


@dataclass(frozen=True)
class Checked:
    """The largest difference to ONNX Runtime on the same weights, and whether it is rounding."""

    largest: float
    relative: float
    bound: float
    wrong: str | None


def demo(
    console: Console, folder: Path, name: str = "inception_v1", title: str = "GoogLeNet"
) -> bool:
    """Run it, print the tables and write `<folder>/<title>.html`; whether the results are right."""
    onnxruntime, _ = extra("onnxruntime"), extra("pygraphviz")
    model = light_model(name)
    with _step(console, f"import {title} with TVM's ONNX frontend"):
        mod = import_onnx(model, title)
    target = host_target()
    with _step(console, "partition_for_tefuse"):
        parted = partition_for_tefuse(mod, target=target)
    with _step(console, f"build {len(report(parted).matched)} composites and the rest"):
        library = build(parted, target)
    with _step(console, "TVM's default build, to compare"):
        default = Library(tvm_road.default_build(mod, target), library.inputs)
    session = _session(onnxruntime, model)
    inputs = random_inputs(library.inputs)
    graph = graph_of(mod)
    checked = _check(library(**inputs), session.run(None, inputs), graph)
    runs: dict[str, Callable[[], object]] = {
        DEFAULT: lambda: default(**inputs),
        OURS: lambda: library(**inputs),
        ORT: lambda: session.run(None, inputs),
    }
    with _step(console, "measure the three in turns"):
        measured = latency(runs)
    decided = report(parted)
    _print(console, decided, library.unscheduled, checked, measured)
    page = _page(title, decided, checked, measured)
    path = folder / f"{title.lower()}.html"
    with _step(console, "the loop nest of each kernel"):
        melted = melting(parted, target)
    write_text(path, render(page, graph, decided, melted))
    console.print(f"\nThe graph with its composites: [bold]{escape(str(path))}[/]")
    return checked.wrong is None


@contextmanager
def _step(console: Console, text: str) -> Iterator[None]:
    start = time.perf_counter()
    with console.status(text):
        yield
    console.print(f"[dim]{time.perf_counter() - start:6.1f} s[/]  {text}")


def _session(onnxruntime: ModuleType, model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = count()
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


def _check(found: list[np.ndarray], expected: list[np.ndarray], graph: OpGraph) -> Checked:
    ours, theirs = found[0], expected[0]
    reduction, dtype = longest_reduction(graph), str(theirs.dtype)
    largest = float(np.abs(ours - theirs).max())
    relative = largest / float(np.abs(theirs).max())
    return Checked(
        largest, relative, tolerance(dtype, reduction), first_wrong(ours, theirs, dtype, reduction)
    )


def _print(
    console: Console,
    decided: Report,
    unscheduled: Mapping[str, str],
    checked: Checked,
    measured: Mapping[str, Latency],
) -> None:
    console.print(tables.taken_table(decided))
    console.print(tables.left_table(left(decided)))
    if unscheduled:
        console.print(tables.unscheduled_table(unscheduled))
    console.print(tables.latency_table(measured, OURS, count()))
    verdict = "[green]rounding[/]" if checked.wrong is None else f"[red]wrong[/]: {checked.wrong}"
    console.print(
        f"\nLargest error against {ORT}: {checked.largest:.1e}, {checked.relative:.1e} of the "
        f"largest output (up to {checked.bound:.1e} is rounding): {verdict}"
    )


def _page(title: str, decided: Report, checked: Checked, measured: Mapping[str, Latency]) -> Page:
    inside = sum(1 for _, _, owner in decided.ops if owner)
    facts = (
        (f"largest error against {ORT}", f"{checked.relative:.1e}"),
        ("what rounding explains", f"{checked.bound:.1e}"),
        ("ops in the model", str(len(decided.ops))),
        ("ops inside composites", str(inside)),
        ("kernels of composites", str(len(decided.matched))),
        ("threads", str(count())),
        ("machine while measuring", "quiet" if measured[OURS].quiet else "busy"),
        ("TVM", f"{tvm.__version__} ({GENERATION.capitalize()})"),
    )
    subtitle = "Every coloured box is a composite: several ops that were compiled as one kernel."
    bars = [(name, found.milliseconds) for name, found in measured.items()]
    return Page(title, subtitle, left(decided), bars, OURS, facts)
