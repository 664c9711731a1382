"""The terminal tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

from ..composite import Composite
from ..partition.report import Report
from ..runtime.timing import Latency
from .summary import Left, taken


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", show_edge=False, pad_edge=False
    )
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left")
    return table


def taken_table(report: Report) -> Table:
    """Which composites matched, and how often."""
    rows = taken(report)
    inside = sum(row.ops for row in rows)
    title = f"\nComposites: {inside} of {len(report.ops)} ops in {len(report.matched)} kernels"
    table = _table(
        title,
        ("composite", ""),
        ("matched", "right"),
        ("ops", "right"),
        ("why it is one kernel", ""),
    )
    for row in rows:
        table.add_row(row.composite, str(row.count), str(row.ops), row.why)
    return table


def left_table(rows: Sequence[Left]) -> Table:
    """What no composite took, and why."""
    table = _table("\nNot taken by a composite", ("op", ""), ("count", "right"), ("why", ""))
    for row in rows:
        table.add_row(row.kind, str(row.count), row.why)
    return table


def unscheduled_table(unscheduled: Mapping[str, str]) -> Table:
    """Functions outside the composites that run as serial loops."""
    table = _table("\nLeft as serial loops", ("function", ""), ("why", ""))
    for name, why in unscheduled.items():
        table.add_row(name, why)
    return table


def latency_table(measured: Mapping[str, Latency], ours: str, threads: int) -> Table:
    """Milliseconds a run, and relative to ours."""
    title = f"\nLatency, {threads} threads: medians of windows in turns"
    table = _table(
        title, ("build", ""), ("ms", "right"), ("relative", "right"), ("windows", "right")
    )
    for name, found in measured.items():
        times = found.milliseconds / measured[ours].milliseconds
        windows = f"{found.windows} quiet" if found.quiet else f"{found.windows} disturbed"
        table.add_row(name, f"{found.milliseconds:,.2f}", f"{times:,.2f}", windows)
    return table


def composites_table(composites: Iterable[Composite]) -> Table:
    """The built-in composites, in order of priority."""
    table = _table(
        "", ("composite", ""), ("arguments", ""), ("cases", "right"), ("why it is one kernel", "")
    )
    for composite in composites:
        table.add_row(*_cells(composite))
    return table


def composites_markdown(composites: Iterable[Composite]) -> str:
    """The same for docs/composites.md."""
    lines = ["| composite | arguments | cases | why it is one kernel |", "|---|---|---:|---|"]
    lines += [
        f"| {' | '.join(('`' + name + '`', *rest))} |" for name, *rest in map(_cells, composites)
    ]
    return "\n".join(lines)


def _cells(composite: Composite) -> tuple[str, str, str, str]:
    return composite.name, ", ".join(composite.arg_names), str(len(composite.cases)), composite.why
