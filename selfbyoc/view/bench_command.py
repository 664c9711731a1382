"""`python -m selfbyoc bench`: run it, show it, write it down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..bench.contenders import CONTENDERS
from ..bench.measure import Method
from ..bench.records import Report, Row, read_report
from ..bench.run import Selection, run
from ..bench.suite import MODELS, NAMED, SWEEP, suite
from ..errors import InputError
from .bench_tables import TITLES, group_table, row_line, summary_lines
from .performance import markdown
from .roofline import roofline

WIDTH = 160  # of the tables in a pipe or a file


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    only: Sequence[str] = ()
    sweep: bool = False
    models: bool = False
    quick: bool = False
    peers: str | None = None
    builds: int = 1
    minilm: Path | None = None
    json: Path | None = None
    resume: bool = False
    roofline: Path | None = None
    markdown: Path | None = None
    list: bool = False


def show(console: Console, asked: Request, method: Method | None = None) -> bool:
    """Do what is asked; whether every result of ours was right. Times decide nothing."""
    if asked.list:
        console.print(_listing())
        return True
    if asked.markdown is not None:
        print(markdown(read_report(asked.markdown)))
        return True
    if not console.is_terminal:
        console = Console(file=console.file, width=WIDTH)
    report = _run(console, asked, method or Method())
    for group in TITLES:
        if report.group(group):
            console.print("", group_table(report, group))
    for line in summary_lines(report):
        console.print(line, highlight=False, soft_wrap=True)
    if asked.roofline is not None:
        try:
            asked.roofline.write_text(roofline(report), encoding="utf-8")
        except OSError as err:
            raise InputError(f"{asked.roofline} cannot be written: {err.strerror}") from err
    return not any(row.ours.wrong for row in report.rows)


def _selection(asked: Request) -> Selection:
    groups = (NAMED, *([SWEEP] if asked.sweep else []), *([MODELS] if asked.models else []))
    peers = asked.peers.split(",") if asked.peers else []
    return Selection(asked.only, groups, peers, asked.minilm)


def _run(console: Console, asked: Request, method: Method) -> Report:
    selection = _selection(asked)
    method = replace(method, turns=1 if asked.quick else method.turns, builds=asked.builds)
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task("", total=len(selection.workloads()))

        def done(row: Row) -> None:
            progress.console.print(row_line(row))
            progress.advance(task)

        def says(name: str, text: str) -> None:
            progress.update(task, description=f"{name}: {text}" if name else text)

        return run(selection, method, asked.json, asked.resume, done, says)


def _listing() -> Table:
    table = Table(show_edge=False)
    table.add_column("workload", no_wrap=True)
    table.add_column("group")
    for workload in suite():
        table.add_row(workload.name, workload.group)
    present = [(c.name, c.missing() or "") for c in CONTENDERS]
    table.caption = "; ".join(f"{name} {reason}".strip() for name, reason in present)
    return table
