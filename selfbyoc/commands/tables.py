"""The terminal tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from ..analysis.explain.grouping import Group, levels
from ..analysis.fusion.rules import tvms_fusion
from ..language.composite import Composite
from ..partition.report import Record, Report
from ..printable import counted
from ..runtime.timing import Latency
from ..tvm.target_data import target_data
from .console import PlainTable
from .summary import Left, taken


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = PlainTable(
        title=title, title_justify="left", title_style="bold", show_edge=False, pad_edge=False
    )
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left")
    return table


def taken_table(report: Report) -> Table:
    """Which composites matched, and how often."""
    rows = taken(report)
    inside = sum(row.ops for row in rows)
    kernels = counted(len(report.matched), "kernel")
    title = f"\nComposites: {inside} of {len(report.ops)} ops in {kernels}"
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
    table = _table(
        "\nLeft to TVM: bytes of each op by itself, their share of the model's, operations",
        ("op", ""), ("count", "right"), ("MB", "right"), ("share", "right"), ("MFLOP", "right"),
        ("why", ""),
    )  # fmt: skip
    for row in rows:
        cost = (f"{row.bytes / 1e6:.3g}", f"{row.share:.0%}", f"{row.flops / 1e6:.3g}")
        table.add_row(row.kind, str(row.count), *cost, Text(row.why))
    return table


def kernels_table(report: Report, target: str, composite: str | None = None) -> Table:
    """What became kernels, with the level of each."""
    groups = [g for g in levels(report) if composite in (None, g.composite)]
    why = {r.composite: r.reason for r in report.matched}
    inside = {name: owner for name, _, owner in report.ops if owner}
    title = f"Kernels for {target}: {len(report.matched)}, with {len(inside)} of the model's "
    table = _table(
        f"{title}{len(report.ops)} ops",
        ("composite", ""), ("count", "right"), ("schedule", ""), ("why it is one kernel", ""),
    )  # fmt: skip
    for g in groups:
        table.add_row(g.composite, str(g.count), Text(_level(g)), Text(why[g.composite]))
    return table


def _level(group: Group) -> str:
    """Only what is not the rule needs its reason."""
    name, _, reason = group.reason.partition(": ")
    return name if name == "own schedule" else f"{name}: {reason}"


def nearly_table(groups: Sequence[Group]) -> Table:
    """What nearly became a kernel."""
    table = _table("\nNearly", ("composite", ""), ("count", "right"), ("at", ""), ("why not", ""))
    for g in groups:
        at = f"{g.roots[0]}, ..." if g.count > 1 else g.roots[0]
        table.add_row(g.composite, str(g.count), at, _reason(g))
    return table


def records_table(records: Iterable[Record]) -> Table:
    """Every decision."""
    table = _table("", ("composite", ""), ("root", ""), ("", ""), ("reason", ""))
    for r in records:
        table.add_row(r.composite, r.root, r.status, _reason(r))
    return table


def _reason(of: Record | Group) -> Text:
    text = Text(of.reason)
    for also in getattr(of, "also", ()):
        text.append(f"\nor {also}")
    return text.append(f"\n{of.hint}", style="italic") if of.hint else text


def inside_table(record: Record) -> Table:
    """The values of a kernel: those that stay inside, and those that come from outside."""
    table = _table("", ("value", ""), ("type", ""), ("", ""))
    for producer, consumer, kind in record.edges:
        table.add_row(f"{producer} -> {consumer}", kind, "stays in the kernel")
    for name, kind, origin in record.args:
        table.add_row(f"argument {name}", kind, f"from {origin}")
    return table


def absorbed_table(report: Report) -> Table:
    """What importers wrote, and what it was read as."""
    table = _table("\nRead as (part of) another op", ("as written", ""), ("read as", ""))
    into: dict[str, list[str]] = {}
    for written, _, now in report.absorbed:
        into.setdefault(now, []).append(written)
    for now, names in into.items():
        table.add_row(", ".join(names), now)
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


def fusion_markdown(composites: Iterable[Composite]) -> str:
    """What TVM's own fusion makes of each, on the generation at hand, for docs/composites.md."""
    lines = [
        "| composite | TVM's kernels | what it does not join, and why |",
        "|---|---:|---|",
    ]
    for found in filter(None, map(tvms_fusion, composites)):
        why = "<br>".join(map(str, found.broken))
        lines.append(f"| `{found.composite}` | {found.kernels} | {why or 'joins them too'} |")
    return "\n".join(lines)


def _cells(composite: Composite) -> tuple[str, str, str, str]:
    return composite.name, ", ".join(composite.arg_names), str(len(composite.cases)), composite.why


def target_text(text: str) -> str:
    """`llvm -mcpu=znver5 -num-cores=2` of a target as a TVM prints it; as it is where that is
    none.
    """
    try:
        found = target_data(text)
        told = {n: found[n] for n in ("mtriple", "mcpu", "mattr", "num-cores") if found.get(n)}
    except (ValueError, AttributeError, TypeError):
        return text
    values = {n: ",".join(v) if isinstance(v, list) else v for n, v in told.items()}
    return " ".join([str(found["kind"]), *(f"-{name}={value}" for name, value in values.items())])


def times_table(seconds: Mapping[str, float]) -> Table:
    """Where the time of a piece of work went."""
    table, total = _table("", ("part", ""), ("s", "right"), ("%", "right")), sum(seconds.values())
    for part, took in seconds.items():
        table.add_row(part, f"{took:.2f}", f"{100 * took / total:.0f}")
    return table
