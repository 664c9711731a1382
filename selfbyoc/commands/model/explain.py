"""`python -m selfbyoc explain MODEL.onnx`: what matches in a model and what does not, with the
reasons. Nothing is built, unless a guard or --time measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ...analysis.explain.explanation import Explanation, explain
from ...analysis.explain.grouping import left
from ...analysis.guard import MeasuredGuard
from ...analysis.melting.report import Melting, melting
from ...common.files import write_text
from ...errors import InputError
from ...models.onnx_model import graph_of
from ...partition import check_target, is_partitioned, partition_for_tefuse
from ...tvm.types import IRModule
from ..console import SafeConsole
from ..explaining import show_all, show_root, show_short
from ..model_file import composites_in, imported, naming
from ..page.page import Page, render
from ..progress import step

WIDTH = 100  # in a pipe or a file


@dataclass(frozen=True)
class Question:
    """What the command line asks."""

    model: Path
    composite: str | None = None
    root: str | None = None
    all: bool = False
    target: str | None = None
    json: Path | None = None
    html: Path | None = None
    time: bool = False
    guard: bool = False
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    composites: Sequence[Path | str] = ()


def inspect(console: Console, asked: Question) -> None:
    """Print what the built-in composites take of a model, and why not the rest."""
    if asked.time and asked.html is None:
        raise InputError("--time: times are on the page; give --html FILE too")
    with step(f"explaining {asked.model.name}"):
        mod = imported(asked.model, asked.shape, asked.input)
        parted = _partitioned(mod, asked) if asked.guard else None
        found = _explained(mod if parted is None else parted, asked)
    if asked.composite is not None:
        found.of(asked.composite)  # an unknown name is an error
    if not console.is_terminal:
        console = SafeConsole(file=console.file, width=WIDTH)
    if asked.root is not None:
        show_root(console, found, asked.root, asked.composite)
    elif asked.all:
        show_all(console, found, asked.composite)
    else:
        show_short(console, found, asked.composite)
    if asked.json is not None:
        _write(asked.json, found.to_json())
    if asked.html is not None:
        with step(f"drawing {asked.html}"):
            _write(asked.html, _page(console, mod, found, asked, parted))
        console.print(f"\nThe graph with its composites: [bold]{escape(str(asked.html))}[/]")


def _partitioned(mod: IRModule, asked: Question) -> IRModule:
    target = None if asked.target is None else check_target(asked.target)
    guard = MeasuredGuard() if asked.guard else None
    with naming(asked.model):
        composites = composites_in(asked.composites)
        return partition_for_tefuse(mod, target=target, composites=composites, guard=guard)


def _explained(mod: IRModule, asked: Question) -> Explanation:
    composites = None if is_partitioned(mod) else composites_in(asked.composites)
    with naming(asked.model):
        return explain(mod, target=asked.target, composites=composites)


def _page(
    console: Console, mod: IRModule, found: Explanation, asked: Question, parted: IRModule | None
) -> str:
    """The page; without its pictures of loops where those cannot be had."""
    page = Page(
        asked.model.stem,
        "Every coloured box is a composite: one kernel.",
        left(found.report),
    )
    try:
        melted = _melted(_partitioned(mod, asked) if parted is None else parted, asked)
    except Exception as err:  # pictures are no reason for no page
        console.print(f"No loops on the page: {type(err).__name__}: {err}", markup=False)
        melted = None
    return render(page, graph_of(mod), found.report, melted)


def _melted(parted: IRModule, asked: Question) -> Melting:
    target = None if asked.target is None else check_target(asked.target)
    return melting(parted, target, asked.time)


def _write(path: Path, text: str) -> None:
    write_text(path, text)
