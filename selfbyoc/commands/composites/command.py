"""`selfbyoc composites`, `ops` and `lint`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ...analysis.lint.linter import tried
from ...errors import InputError, did_you_mean
from ...language.known import default_registry
from ...ops.vocabulary import written
from ...tvm import GENERATION
from .. import tables
from ..console import within
from ..model.verify import print_findings
from ..model_file import composites_in
from ..progress import step
from . import op_reference


@dataclass(frozen=True)
class Composites:
    """What the command line asks of `composites`."""

    markdown: bool = False
    composites: Sequence[Path | str] = ()


def composites(console: Console, asked: Composites) -> None:
    """Those of files first, then the built-in ones."""
    every = composites_in(asked.composites) or list(default_registry())
    if asked.markdown:
        print(tables.composites_markdown(every), end="\n\n")
        print(tables.fusion_markdown(every))
    else:
        console.print(tables.composites_table(every))


@dataclass(frozen=True)
class Ops:
    """What the command line asks of `ops`."""

    op: str | None = None
    markdown: bool = False
    stub: bool = False


def ops(console: Console, asked: Ops) -> None:
    """The op reference, or one op of it."""
    if asked.op is not None and asked.op not in written():
        raise InputError(f"no op {asked.op!r}{did_you_mean(asked.op, written())}")
    if asked.markdown:
        print(op_reference.markdown())
    elif asked.stub:
        print(op_reference.stub(), end="")
    else:
        for line in op_reference.shown(asked.op).splitlines():
            text = within(console, line)
            console.print(text, markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Lint:
    """What the command line asks of `lint`."""

    file: Path
    name: str | None = None


def lint(console: Console, asked: Lint) -> bool:
    """Print the findings of a file; -> whether there are none."""
    with step(f"checking {asked.file}"):
        findings, cases = tried(asked.file, asked.name)
    print_findings(console, findings, str(asked.file))
    if not findings and not cases:
        text = f"no case is for this TVM ({GENERATION}): nothing was tried"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    return not findings and cases > 0
