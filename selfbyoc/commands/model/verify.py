"""`python -m selfbyoc verify MODEL.onnx` and `lint FILE.py`: one line a kernel, one a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ...analysis.lint.linter import Finding
from ...analysis.verify.checks import TIMEOUT
from ...analysis.verify.records import PASSED, REFUSED, Verdict, Verification
from ...analysis.verify.verification import check_kinds, check_timeout, verify
from ...common.files import write_text
from ...tvm.types import IRModule
from ..console import within
from ..model_file import composites_in, imported, naming
from ..progress import step

_STYLES = {PASSED: "green", REFUSED: "yellow"}


@dataclass(frozen=True)
class Request:
    """What the command line asks of `verify`."""

    model: Path
    target: str | None = None
    kind: Sequence[str] | None = None
    seed: int = 0
    timeout: float = TIMEOUT
    json: Path | None = None
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    composites: Sequence[Path | str] = ()


def run(console: Console, asked: Request) -> bool:
    """Verify an ONNX model, one line a kernel as it is done; -> whether all is well."""
    check_kinds(asked.kind)
    check_timeout(asked.timeout)
    with step(f"verifying {asked.model.name}"):
        mod = imported(asked.model, asked.shape, asked.input)
        found = _verified(mod, asked, lambda verdict: _print(console, verdict))
    console.print(f"\n[bold]{escape(found.summary)}[/]", soft_wrap=True)
    if asked.json is not None:
        _write(asked.json, found)
    return found.ok


def _verified(
    mod: IRModule, asked: Request, watch: Callable[[Verdict], None] | None
) -> Verification:
    options: dict[str, Any] = {"kinds": asked.kind, "seed": asked.seed, "timeout": asked.timeout}
    composites = composites_in(asked.composites)
    with naming(asked.model):
        return verify(
            mod, target=asked.target, composites=composites, isolate=True, watch=watch, **options
        )


def _write(path: Path, found: Verification) -> None:
    write_text(path, found.to_json())


def _print(console: Console, verdict: Verdict) -> None:
    """A line for the kernel, and one for everything that went wrong or should be known."""
    style = _STYLES.get(verdict.status, "red")
    passed = ", ".join(c.kind for c in verdict.checks if c.status == PASSED)
    line = f"{verdict.composite} at {verdict.where}, {verdict.level}"
    long = not console.is_terminal
    console.print(
        f"[{style}]{verdict.status:8}[/]{escape(line)}[dim]{escape('  ' + passed)}[/]",
        soft_wrap=long,
    )
    for text in [*map(str, verdict.failures), *verdict.notes]:
        console.print(escape(within(console, f"         {text}")), soft_wrap=True, highlight=False)


def print_findings(console: Console, findings: Sequence[Finding], where: str) -> None:
    """One line a finding, as compilers write them, and their number."""
    for finding in findings:
        console.print(escape(str(finding)), soft_wrap=True, highlight=False)
    count = len(findings)
    text = "nothing to report" if not count else f"{count} finding{'s' if count > 1 else ''}"
    console.print(f"[bold]{escape(where)}: {text}[/]", soft_wrap=True)
