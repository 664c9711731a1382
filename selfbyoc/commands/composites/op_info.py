"""`python -m selfbyoc op-info`: the ops of each composite's kernel, before and after scheduling."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...analysis.op_table import OpTable, op_tables
from ...codegen.info.op_record import OpInfo, TensorInfo
from ...codegen.info.unknown import UNKNOWN
from ...codegen.target import host_target
from ...common.files import write_text
from ...graph import type_text
from ...language.known import registry_of
from ...partition import check_target
from ..console import PlainTable
from ..model_file import composites_in
from ..progress import step

COLUMNS = ("op", "kind", "attributes", "inputs", "outputs", "blocks", "blocks when scheduled")


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    composite: str | None = None
    target: str | None = None
    json: Path | None = None
    markdown: bool = False
    composites: Sequence[Path | str] = ()


def show(console: Console, request: Request) -> None:
    """Print the tables."""
    registry = registry_of(composites_in(request.composites))
    target = check_target(request.target) if request.target else host_target()
    chosen = [registry[request.composite]] if request.composite else list(registry)
    with step("scheduling"):
        tables = op_tables(chosen, target)
    if request.json is not None:
        data = [table.to_dict() for table in tables]
        write_text(request.json, json.dumps(data, indent=1) + "\n")
    if request.markdown:
        print(markdown(tables))
        return
    for table in tables:
        console.print(_rich(table))
    console.print("\n* depends on the layout")


def _rows(table: OpTable) -> list[tuple[str, ...]]:
    """One line an op; what is the same before and after is said once."""
    after = {info.name: info for info in table.after}
    rows: list[tuple[str, ...]] = []
    for info in table.before:
        now = after[info.name]
        attrs = info.attrs if info.attrs == now.attrs else now.attrs
        marked = [f"{n}{'*' * (n in info.layout_sensitive)}={_text(v)}" for n, v in attrs.items()]
        rows.append(
            (
                info.name, f"{info.kind}, {info.pattern}", ", ".join(marked),
                _inputs(now), _tensors(now.outputs), _blocks(info), _blocks(now),
            )
        )  # fmt: skip
    return rows


def _text(value: object) -> str:
    return repr(value) if value is UNKNOWN or not isinstance(value, str) else value


def _inputs(info: OpInfo) -> str:
    """Each with where it comes from."""
    return ", ".join(
        f"{source!r}: {_tensors([tensor])}"
        for source, tensor in zip(info.sources, info.inputs, strict=True)
    )


def _tensors(tensors: Sequence[TensorInfo]) -> str:
    return ", ".join(
        type_text(t.shape, t.dtype) + (f" {t.layout}" if t.layout is not None else "")
        for t in tensors
    )


def _blocks(info: OpInfo) -> str:
    return ", ".join(info.blocks) or f"in {info.within}"


def _rich(table: OpTable) -> Table:
    """Narrower: what belongs together shares a column."""
    title = f"\n{table.composite}, {table.level}, case {table.case}"
    found = PlainTable(title=title, title_justify="left", title_style="bold", show_edge=False)
    for name in ("op", "attributes", "inputs -> outputs", "blocks -> scheduled"):
        found.add_column(name, overflow="fold")
    for op, kind, attrs, ins, outs, blocks, scheduled in _rows(table):
        cells = (f"{op}\n{kind.partition(', ')[2]}", attrs, f"{ins}\n-> {outs}")
        found.add_row(*map(Text, cells), Text(f"{blocks}\n-> {scheduled}"))
    return found


def markdown(tables: Sequence[OpTable]) -> str:
    """The same for a document."""
    lines = []
    for table in tables:
        lines += [f"## {table.composite}", "", f"{table.level}; case `{table.case}`", ""]
        lines += [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
        lines += [f"| {' | '.join(row)} |".replace("*", "\\*") for row in _rows(table)]
        lines.append("")
    return "\n".join(lines)
