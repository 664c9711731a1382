"""`python -m selfbyoc fuzz`: what was grown, built and compared, and what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...common.files import write_text
from ...common.optional import extra
from ...errors import InputError
from ...machine import host
from ...models.shapes import parse_shapes
from ...tvm import GENERATION
from ..progress import step
from .judge import KINDS, Finding
from .run import Plan, Result, fuzz, replayed
from .tables import markdown, read_run
from .targets import Setting

_NOTHING = "nothing was built, so nothing was checked"
_OF_FILES = ("graphs", "not valid", "builds", "refused", "refused by TVM too", "by TVM alone",
             "TVM alone is as wrong", "not compared")  # fmt: skip
_ROWS = (
    "graphs", "builds", "unwritten", "by NumPy", "by ONNX Runtime", "by TVM alone", "twins",
    "twins built", "NumPy differs from both", "refused by TVM too", "known limits", "not compared",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """What the command line asks of the fuzzer."""

    seconds: float = 60.0
    seed: int = 0
    count: int | None = None
    jobs: int = 1
    target: str | None = None
    composites: tuple[Path, ...] = ()
    timeout: float = 120.0
    shrink: int = 150
    output: Path = Path("build/fuzz")
    replay: Path | None = None
    json: Path | None = None
    onnx: bool = False
    like: tuple[Path, ...] = ()
    shape: tuple[str, ...] = ()
    tables: tuple[Path, ...] = ()
    opt_level: int | None = None


def run(console: Console, asked: Request) -> bool:
    """Fuzz, or replay one case; -> whether nothing was found."""
    if asked.tables:
        print(markdown([read_run(path) for path in asked.tables]))
        return True
    if asked.target is not None:
        host.check_runs(asked.target, "programs of the fuzzer")
    files = tuple(str(path.resolve()) for path in asked.composites)
    setting = Setting(asked.target, files, asked.opt_level)
    if asked.replay is not None:
        found, counts = replayed(asked.replay, setting, asked.timeout)
        right = "nothing is wrong" if counts["builds"] else _NOTHING
        console.print(right if found is None else _line(found), soft_wrap=True)
        return found is None and bool(counts["builds"])
    if asked.shape and not asked.like:
        raise InputError("--shape: expected a model of these inputs, --like FILE.onnx")
    if asked.onnx or asked.like:
        for package in ("onnx", "onnxruntime"):  # one line, not a finding for each graph
            extra(package)
    plan = Plan(
        asked.seconds, asked.count, asked.seed, asked.jobs, asked.timeout, asked.shrink,
        asked.output, setting, asked.onnx or bool(asked.like), tuple(asked.like),
        parse_shapes(asked.shape),
    )  # fmt: skip
    with step("growing programs"):
        result = fuzz(plan, lambda finding: console.print(_line(finding), soft_wrap=True))
    console.print(_table(result, _OF_FILES if asked.like else _ROWS))
    if result.findings:
        what = "a model and its inputs" if asked.like else "a case and as a test"
        console.print(f"each as {what}: {asked.output}", soft_wrap=True)
    if asked.json is not None:
        write_text(asked.json, result.to_json(plan))
    if not result.counts["builds"]:
        console.print(_NOTHING, soft_wrap=True)
    return not result.findings and bool(result.counts["builds"])


def _line(found: Finding) -> str:
    ops = ", ".join(found.program.kinds())
    return f"[red]{found.kind:7}[/]{escape(ops)}\n       {escape(found.text)}"


def _table(result: Result, rows: Sequence[str]) -> Table:
    table = Table("", GENERATION, title="what was done, and what was found")
    for name in rows:
        table.add_row(name, str(result.counts[name]))
    table.add_row("composites matched", str(sum(result.matches.values())))
    table.add_row("different composites", str(len(+result.matches)))
    table.add_row("graphs an hour", f"{result.an_hour:.0f}", end_section=True)
    found = Counter(key.partition(":")[0] for key in result.alike.elements())
    for kind in KINDS:
        different = len({key for key in result.alike if key.startswith(f"{kind}:")})
        table.add_row(f"findings: {kind}", f"{found[kind]}, {different} different")
    return table
