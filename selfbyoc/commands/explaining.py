"""An explanation on a terminal: the short form, every record, or all about one op."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ..analysis.explain.explanation import Explanation
from ..analysis.explain.grouping import left, nearly
from ..partition.report import Record
from . import tables


def show_short(console: Console, found: Explanation, composite: str | None = None) -> None:
    """The kernels with their schedules, what nearly was one, and what is left to TVM."""
    console.print(tables.kernels_table(found.report, found.target, composite))
    near = [g for g in nearly(found.report) if composite in (None, g.composite)]
    if near:
        console.print(tables.nearly_table(near))
    rows = left(found.report) if composite is None else []
    if rows:
        console.print(tables.left_table(rows))
    if found.sizes:
        console.print(f"\nSizes: {found.sizes}.", markup=False, highlight=False)
    for problem in found.report.problems:
        console.print(f"Not explained: {problem}", markup=False)


def show_all(console: Console, found: Explanation, composite: str | None = None) -> None:
    """Every record, and what importers' ops were read as."""
    records = found.records if composite is None else found.of(composite)
    if not records:
        about = "any composite" if composite is None else f"composite {composite}"
        console.print(f"No op of this model can be the root of {about}.", markup=False)
        return
    console.print(tables.records_table(records))
    if composite is None and found.report.absorbed:
        console.print(tables.absorbed_table(found.report))


def show_root(console: Console, found: Explanation, op: str, composite: str | None = None) -> None:
    """Every decision about an op, and the kernel that it is in."""
    root, note = found.resolve(op)
    if note:
        console.print(note, markup=False, highlight=False)
    records = [r for r in found.records if r.root == root and composite in (None, r.composite)]
    if records:
        console.print(tables.records_table(records))
    else:
        asked = "any composite" if composite is None else f"composite {composite}"
        console.print(f"{root} cannot be the root of {asked}.", highlight=False)
    _show_kernel(console, found.report.matched, root)


def _show_kernel(console: Console, matched: Sequence[Record], op: str) -> None:
    holder = next((r for r in matched if op in r.ops), None)
    if holder is None:
        console.print(f"\n{op} is in no kernel.", highlight=False)
        return
    where = f"{holder.composite} at {holder.root}"
    console.print(f"\n{op} is in one kernel with the ops of {where}.", highlight=False)
    if holder.plan:
        console.print(f"Its plan: {holder.plan}.", markup=False, highlight=False)
    console.print(tables.inside_table(holder))
