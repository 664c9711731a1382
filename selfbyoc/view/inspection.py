"""`python -m selfbyoc partition MODEL.onnx`: what matches in a model, without building it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from .. import partition_for_tefuse, report
from ..models.onnx_model import graph_of, import_onnx, read_onnx
from ..schedules import BUILTIN
from . import tables
from .page import Page, render
from .summary import left


def inspect(console: Console, path: Path, html: Path | None = None) -> None:
    """Print what the built-in composites take, and why not the rest; with `html`, draw it."""
    mod = import_onnx(read_onnx(path), path.name)
    decided = report(partition_for_tefuse(mod))
    rows = left(decided, BUILTIN)
    console.print(tables.taken_table(decided))
    console.print(tables.left_table(rows))
    if html is not None:
        page = Page(
            path.stem, "Every coloured box is a composite: several ops in one kernel.", rows
        )
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(render(page, graph_of(mod), decided), encoding="utf-8")
        console.print(f"\nThe graph with its composites: [bold]{html}[/]")
