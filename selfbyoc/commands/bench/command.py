"""`python -m selfbyoc bench`: run it, show it, write it down."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ...common.files import write_text
from ...errors import InputError
from ...models.sizes import parse_lengths, parse_sizes
from ...printable import shown
from ..console import PlainTable, SafeConsole
from ..model_file import composites_in
from .contenders import CONTENDERS
from .files import ONNX_ONLY, Files, is_onnx, time_files
from .length_tables import length_lines, length_table
from .lengths import LENGTHS, length_workloads
from .measure import Method
from .own import own_workloads
from .performance import markdown
from .quantised import LEVELS
from .records import Report, Row, read_report
from .request import Request
from .roofline import roofline
from .run import Selection, run
from .setting import Setting, make_setting
from .start import TURNS, show_starts
from .suite import MODELS, NAMED, SWEEP, suite
from .tables import TITLES, group_table, row_line, summary_lines
from .where.command import show_where
from .where.records import is_places, read_places
from .where.tables import markdown as places_markdown

WIDTH = 160  # of the tables in a pipe or a file
# In the order of Files.
_OF_FILES = ("shape", "target", "threads", "composites", "quick", "size", "requantize")


def show(console: Console, asked: Request, method: Method | None = None) -> bool:
    """Do what is asked; whether every result of ours is there and right. Times decide nothing."""
    if asked.list:
        console.print(_listing())
        return True
    if asked.markdown is not None:
        print(shown(_markdown(asked.markdown)))
        return True
    if asked.decode is not None:
        from .decode.command import show_decoding

        return show_decoding(_wide(console), asked, _setting(asked))
    for name in ("weights", "keep", "behind"):
        if getattr(asked, name) is not None:
            raise InputError(f"--{name}: only beside --decode")
    files = [path for path in asked.own if not is_onnx(path)]
    if files:
        _check_files(asked, files)
        time_files(console, Files(files, *(getattr(asked, n) for n in _OF_FILES)))
        return True
    console = _wide(console)
    if asked.where:
        return _show_where(console, asked, method or Method())
    if asked.start:
        return _show_starts(console, asked)
    return _show_report(console, asked, _run(console, asked, method or Method()))


def _wide(console: Console) -> Console:
    """As wide as the tables, where that is no terminal."""
    return console if console.is_terminal else SafeConsole(file=console.file, width=WIDTH)


def _show_report(console: Console, asked: Request, report: Report) -> bool:
    for group in TITLES:
        if report.group(group):
            console.print("", group_table(report, group))
    lengths = report.group(LENGTHS)
    if lengths:
        console.print("", length_table(lengths))
    for line in [*summary_lines(report), *length_lines(lengths)]:
        console.print(line, highlight=False, soft_wrap=True)
    if asked.roofline is not None:
        _draw(asked.roofline, report)
    return _all_right(report)


def _markdown(path: Path) -> str:
    if is_places(path):
        return places_markdown(read_places(path))
    return markdown(read_report(path))


def _show_where(console: Console, asked: Request, method: Method) -> bool:
    _check_choice(asked)
    for name in ("lengths", "resume", "roofline"):
        if getattr(asked, name):
            raise InputError(f"--{name}: not beside --where")
    if asked.builds != 1:
        raise InputError("--builds: not beside --where, which takes one build apart")
    workloads = own_workloads(asked.own, asked.shape, asked.input)
    peers = asked.peers.split(",") if asked.peers else []
    setting, method = _setting(asked), _method(asked, method)
    return show_where(console, workloads, peers, setting, method, asked.json)


def _show_starts(console: Console, asked: Request) -> bool:
    _check_choice(asked)
    default = Request()
    others = {*ONNX_ONLY, *_OF_FILES} - {"shape", "input", "json", "threads", "start", "quick"}
    for name in sorted(others):
        if (getattr(asked, name) or None) != (getattr(default, name) or None):
            raise InputError(f"--{name}: not beside --start")
    workloads = own_workloads(asked.own, asked.shape, asked.input)
    turns = 1 if asked.quick else TURNS
    return show_starts(console, workloads, _setting(asked), turns, asked.json)


def _check_files(asked: Request, files: Sequence[Path]) -> None:
    """Those that are no ONNX are timed by themselves."""
    _check_choice(asked)
    default = Request()
    for name in ONNX_ONLY:
        given, usual = getattr(asked, name), getattr(default, name)
        if given != usual and (given or usual):  # a list of none is ()
            raise InputError(f"--{name}: of ONNX models, and {files[0].name} is none")
    if len(files) < len(asked.own):
        other = next(path for path in asked.own if path not in files)
        raise InputError(f"{other.name} and {files[0].name}: expected ONNX models alone, or none")


def _draw(path: Path, report: Report) -> None:
    write_text(path, roofline(report))


def _all_right(report: Report) -> bool:
    """Whether each workload has a right result of ours; an error for one that nobody can run."""
    for row in report.rows:
        if not row.built:
            reasons = "; ".join(f"{n}: {r.skipped}" for n, r in row.results.items())
            raise InputError(f"nobody can run {row.name}: {reasons}")
    return all(row.ours.counts for row in report.rows)


def _selection(asked: Request, folder: Path) -> Selection:
    """What is asked to be measured; `folder` is for a model that some sizes are fixed in."""
    _check_choice(asked)
    groups = (NAMED, *([SWEEP] if asked.sweep else []), *([MODELS, LEVELS] if asked.models else []))
    peers = asked.peers.split(",") if asked.peers else []
    if asked.lengths is not None:
        lengths, sizes = parse_lengths(asked.lengths), parse_sizes(asked.size)
        own = length_workloads(asked.own[0], lengths, sizes, asked.shape, folder, asked.input)
        return Selection(contenders=peers, own=own, is_open=True)
    own = own_workloads(asked.own, asked.shape, asked.input)
    return Selection(asked.only, groups, peers, asked.minilm, own)


def _check_choice(asked: Request) -> None:
    """Files are measured instead of the suite, and only files have shapes to fix."""
    suite_only = ("only", "sweep", "models", "minilm")
    given = [f"--{name}" for name in suite_only if getattr(asked, name)]
    if asked.own and given:
        raise InputError(f"{' '.join(given)}: of the suite, which MODEL.onnx takes the place of")
    if asked.shape and not asked.own:
        raise InputError("--shape fixes the inputs of a MODEL.onnx, and there is none")
    if asked.input and not asked.own:
        raise InputError("--input is of a MODEL.onnx, and there is none")
    _check_lengths(asked)
    if asked.composites and asked.resume:
        raise InputError("--resume: a report does not say with which --composites it was measured")


def _check_lengths(asked: Request) -> None:
    """They are of one model, which everybody builds once."""
    if asked.lengths is None:
        if asked.size and all(map(is_onnx, asked.own)):
            raise InputError("--size fixes what is open beside --lengths; without it, use --shape")
        return
    if len(asked.own) != 1:
        raise InputError(f"--lengths: expected one MODEL.onnx, found {len(asked.own)}")
    if asked.builds != 1:
        raise InputError("--builds: with --lengths everybody builds once")


def _run(console: Console, asked: Request, method: Method) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        return _run_in(Path(folder), console, asked, method)


def _run_in(folder: Path, console: Console, asked: Request, method: Method) -> Report:
    selection, setting = _selection(asked, folder), _setting(asked)
    method = _method(asked, method)
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task("", total=len(selection.workloads()))

        def done(row: Row) -> None:
            progress.console.print(row_line(row))
            progress.advance(task)

        def says(name: str, text: str) -> None:
            progress.update(task, description=f"{name}: {text}" if name else text)

        return run(selection, method, asked.json, asked.resume, done, says, setting)


def _setting(asked: Request) -> Setting:
    setting = make_setting(asked.threads, asked.target)
    composites_in(asked.composites)  # what is wrong with one is an error before any is timed
    mine = tuple(c if isinstance(c, str) else str(c.resolve()) for c in asked.composites)
    return replace(setting, composites=mine, requantize=asked.requantize)


def _method(asked: Request, method: Method) -> Method:
    return replace(method, turns=1 if asked.quick else method.turns, builds=asked.builds)


def _listing() -> Table:
    table = PlainTable(show_edge=False)
    table.add_column("workload", no_wrap=True)
    table.add_column("group")
    for workload in suite():
        table.add_row(workload.name, workload.group)
    present = [(c.name, c.missing() or "") for c in CONTENDERS]
    table.caption = "; ".join(f"{name} {reason}".strip() for name, reason in present)
    return table
