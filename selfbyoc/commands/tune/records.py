"""`python -m selfbyoc records DIR`: what records of tuning there are, and whether they fit here."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...codegen.records.lookup import Applied, apply_records
from ...codegen.records.record import CHOSEN, Place, Record, best, read
from ...codegen.records.workload import place_of
from ...codegen.target import host_target
from ...errors import RecordWarning
from ...partition import check_target, partition_for_tefuse
from ...tvm.types import Target
from ..console import PlainTable, SafeConsole
from ..model_file import composites_in, imported
from ..progress import step
from .tables import WIDTH, ms, ratio, short


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    folder: Path
    model: Path | None = None
    target: str | None = None
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    composites: Sequence[Path | str] = ()


def show(console: Console, asked: Request) -> bool:
    """One line a kernel and place; with a model, what its kernels take, and why they do not.

    False where there is no record that can be read, and where the model needs other records.
    """
    if not console.is_terminal:
        console = SafeConsole(file=console.file, width=WIDTH)
    target = check_target(asked.target) if asked.target else host_target()
    with warnings.catch_warnings(record=True) as unread:
        warnings.simplefilter("always", RecordWarning)
        found = read(asked.folder)
    with step(f"partitioning {asked.model.name if asked.model else ''}"):
        applied = None if asked.model is None else _applied(asked, asked.model, target)
    here = place_of(target)
    for place in dict.fromkeys(str(r.place) for r in found):
        console.print("", _table([r for r in found if str(r.place) == place], here, applied))
    for text in dict.fromkeys(str(w.message) for w in unread):
        console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
    if not found:
        console.print(f"no record in {asked.folder}", markup=False, highlight=False, soft_wrap=True)
    if applied is None:
        return bool(found)
    return _serve(found, here, applied)


def _serve(found: Sequence[Record], here: Place, applied: Applied) -> bool:
    """Whether the model takes every record that this place has of its kernels, and at least one.

    Other places' records and other models' are no fault: a folder may be shared.
    """
    refused = [r for r in found if r.place == here and r.workload in applied.refused]
    return bool(applied.used) and not refused


def _applied(asked: Request, model: Path, target: Target) -> Applied:
    mod = imported(model, asked.shape, asked.input)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)  # the table says it all
        with apply_records(asked.folder) as applied:
            composites = composites_in(asked.composites)
            partition_for_tefuse(mod, target=target, composites=composites)
    return applied


def _table(found: Sequence[Record], here: Place, applied: Applied | None) -> Table:
    """The records of one place."""
    place = found[0].place
    title = str(place) if place == here else f"{place} (this is {here})"
    table = PlainTable(title=title, title_justify="left", title_style="bold", show_edge=False)
    table.add_column("task", overflow="fold")
    for name in ("tried", "hand ms", "best ms", "ratio", "date"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("fits here" if applied is None else "in the model", overflow="fold")
    for workload in dict.fromkeys(r.workload for r in found):
        records = [r for r in found if r.workload == workload]
        fits = _here(records, here) if applied is None else _there(records, here, applied)
        table.add_row(short(records[-1].about), *_cells(records), Text(fits))
    return table


def _cells(records: Sequence[Record]) -> tuple[str, ...]:
    chosen = best(records)
    hand, found = (chosen.default_seconds, chosen.seconds) if chosen else (None, None)
    tried = sum(r.status != CHOSEN for r in records)
    date = (chosen or records[-1]).made_by.get("date", "-").replace("T", " ")[:16]
    return str(tried), ms(hand), ms(found), ratio(hand, found), date


def _here(records: Sequence[Record], here: Place) -> str:
    """What can be said without the model: not whether its kernel is still the same."""
    if records[0].place != here:
        return "no"
    return "yes" if best(records) else "no: no candidate could be used"


def _there(records: Sequence[Record], here: Place, applied: Applied) -> str:
    if records[0].place != here:
        return "no"
    key = records[0].workload
    if key in applied.used:
        return "used"
    return applied.refused.get(key, "no such kernel").rpartition(" is not used: ")[2]
