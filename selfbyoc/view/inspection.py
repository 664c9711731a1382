"""`python -m selfbyoc explain MODEL.onnx`: what matches in a model and what does not, with the
reasons. Nothing is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ..analysis.explain import Explanation, explain
from ..analysis.grouping import left, nearly
from ..analysis.melting import Melting, melting
from ..errors import InputError, SelfbyocError
from ..models.onnx_model import graph_of, import_onnx, read_onnx
from ..partition import check_target, partition_for_tefuse
from ..partition.report import Record
from . import tables
from .page import Page, render

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


def inspect(console: Console, asked: Question) -> None:
    """Print what the built-in composites take of a model, and why not the rest."""
    mod = import_onnx(read_onnx(asked.model), asked.model.name)
    found = _explained(mod, asked)
    records = _asked_for(found, asked)
    if not console.is_terminal:
        console = Console(file=console.file, width=WIDTH)
    if asked.root is not None:
        _print_root(console, found, records, asked.root)
    elif not records:
        about = f"composite {asked.composite}" if asked.composite else "any composite"
        console.print(f"No op of this model can be the root of {about}.", markup=False)
    elif asked.all:
        console.print(tables.records_table(records))
        if found.report.absorbed and asked.composite is None:
            console.print(tables.absorbed_table(found.report))
    else:
        _print_short(console, found, records, asked.composite)
    for problem in found.report.problems:
        console.print(f"Not explained: {problem}", markup=False)
    if asked.json is not None:
        _write(asked.json, found.to_json())
    if asked.html is not None:
        rows = left(found.report)
        page = Page(asked.model.stem, "Every coloured box is a composite: one kernel.", rows)
        _write(asked.html, render(page, graph_of(mod), found.report, _melted(mod, asked)))
        console.print(f"\nThe graph with its composites: [bold]{asked.html}[/]")


def _explained(mod: Any, asked: Question) -> Explanation:
    try:
        return explain(mod, target=asked.target)
    except SelfbyocError:
        raise
    except Exception as err:  # TVM's passes over an odd model raise plain errors of many kinds
        line = (str(err).strip() or type(err).__name__).splitlines()[0]
        raise InputError(f"TVM cannot normalise {asked.model.name}: {line}") from err


def _melted(mod: Any, asked: Question) -> Melting:
    target = None if asked.target is None else check_target(asked.target)
    return melting(partition_for_tefuse(mod, target=target), target)


def _asked_for(found: Explanation, asked: Question) -> list[Record]:
    records = found.records if asked.composite is None else found.of(asked.composite)
    if asked.root is None:
        return list(records)
    root, _ = found.resolve(asked.root)
    return [r for r in records if r.root == root]


def _print_short(
    console: Console, found: Explanation, records: list[Record], composite: str | None
) -> None:
    names = {r.composite for r in records}
    console.print(tables.kernels_table(found.report, found.target, composite))
    near = [g for g in nearly(found.report) if g.composite in names]
    if near:
        console.print(tables.nearly_table(near))
    if composite is None:
        console.print(tables.left_table(left(found.report)))


def _print_root(console: Console, found: Explanation, records: list[Record], name: str) -> None:
    root, note = found.resolve(name)
    if note:
        console.print(note, markup=False, highlight=False)
    if records:
        console.print(tables.records_table(records))
    else:
        console.print(f"No composite of these ends in {root}.", highlight=False)
    holder = next((r for r in found.report.matched if root in r.ops), None)
    if holder is None:
        console.print(f"\n{root} is in no kernel.", highlight=False)
        return
    where = f"{holder.composite} at {holder.root}"
    console.print(f"\n{root} is in one kernel with the ops of {where}.", highlight=False)
    console.print(tables.inside_table(holder))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as err:
        raise InputError(f"{path} cannot be written: {err.strerror}") from err
