"""The benchmark in the terminal: times, ratios, and what is to be said about them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ..console import PlainTable
from .limits import limit
from .means import compared, geometric_mean, ratios, worst
from .quantised import LEVELS
from .records import OURS, OWN_BUILD, Report, Result, Row

TITLES = {
    "named": "Fused workloads", "sweep": "Shapes of real networks", "models": "Whole models",
    LEVELS: "Whole models in int8", "own": "Own models",
}  # fmt: skip
OVER_FLOATS = "our floats / ours"
SHORT = {OURS: "ours", "onnxruntime": "ORT", "openvino": "OpenVINO", OWN_BUILD: "TVM default"}


def milliseconds(value: float) -> str:
    """Three digits that mean something."""
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def names(rows: Sequence[Row]) -> list[str]:
    """Everybody who took part somewhere, ours first."""
    found: dict[str, None] = {OURS: None}
    for row in rows:
        found |= dict.fromkeys(n for n, r in row.results.items() if not r.skipped)
    return list(found)


def group_table(report: Report, group: str) -> Table:
    """One group; what we lose is red, the best peer is bold."""
    rows = report.group(group)
    table = PlainTable(title=f"{TITLES[group]}, ms", title_justify="left", show_edge=False)
    table.add_column("workload", no_wrap=True)
    for name in names(rows):
        table.add_column(SHORT.get(name, name), justify="right", no_wrap=True)
    beside = [OVER_FLOATS] if group == LEVELS else []
    for name in (compared(rows), *beside, "of peak", "peer of peak", "limit", "error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*_cells(report, row, names(rows)))
    return table


def _cells(report: Report, row: Row, shown: Sequence[str]) -> list[Text]:
    cells = [*time_cells(row, shown), ratio_cell(row.ratio)]
    if row.floats:
        cells.append(ratio_cell(report.over_floats(row)))
    cells += [Text(percent(report.share(row, name))) for name in (OURS, row.best_peer)]
    return [*cells, Text(limit(row, report)), error_cell(row.ours)]


def time_cells(row: Row, shown: Sequence[str]) -> list[Text]:
    """The row's name and everybody's milliseconds."""
    red = "red" if row.ratio is not None and row.ratio < 1 else ""
    cells = [Text(row.name, style=red)]
    for name in shown:
        result = row.results.get(name)
        text = "-" if result is None or result.skipped else milliseconds(result.milliseconds)
        wrong = result is not None and result.wrong
        style = "red" if wrong else "bold" if name == row.best_peer else red * (name == OURS)
        cells.append(Text(text + "!" * wrong, style=style))
    return cells


def ratio_cell(ratio: float | None, least: float = 1) -> Text:
    """Red below what it should be."""
    style = "red" if ratio is not None and ratio < least else "green"
    return Text("-" if ratio is None else f"{ratio:.2f}", style=style)


def error_cell(ours: Result) -> Text:
    """What our result is off by."""
    return Text("wrong" if ours.wrong else _error(ours.relative), "red" * ours.wrong)


def percent(share: float) -> str:
    """Of a share; a dash where it is not known."""
    return "-" if math.isnan(share) else f"{100 * share:.0f}%"


def _error(relative: float) -> str:
    return "-" if math.isnan(relative) else f"{relative:.1e}"


def summary_lines(report: Report) -> list[str]:
    """Geometric means, the worst of the sweep, who was left out and why."""
    lines = [
        f"peak {report.peak:.0f} GFLOP/s of fp32 multiply-adds on {report.threads} threads, "
        f"by code for {report.target}"
    ]
    for group in TITLES:
        rows = report.group(group)
        found = ratios(rows)
        if found:
            lost = sum(1 for ratio in found if ratio < 1)
            lines.append(
                f"{TITLES[group].lower()}: {compared(rows)} {geometric_mean(found):.2f} "
                f"(geometric mean of {len(found)}), {lost} lost"
            )
    floats = over_floats(report)
    if floats:
        lines.append(
            f"int8: our floats / ours {geometric_mean(floats):.2f} (geometric mean of "
            f"{len(floats)}), lowest {min(floats):.2f}"
        )
    last = worst(report.group("sweep"))
    if last:
        listed = "; ".join(f"{r.name} {r.ratio:.2f} ({r.best_peer})" for r in last)
        lines.append(f"worst of the sweep: {listed}")
    return lines + [f"{name}: {reason}" for name, reason in _absent(report).items()]


def over_floats(report: Report) -> list[float]:
    """How many times as fast our models of levels are as those of floats."""
    found = map(report.over_floats, report.group(LEVELS))
    return [ratio for ratio in found if ratio is not None]


def _absent(report: Report) -> dict[str, str]:
    """`contender on workload` -> why there is no time; once where it is so everywhere."""
    found: dict[str, str] = {}
    for row in report.rows:
        if row.disturbed:
            found[row.name] = f"others took {100 * row.others:.0f}% of the cores: measure it again"
        if row.unchecked:
            found[f"results of {row.name}"] = row.unchecked
        for name, result in row.results.items():
            if result.wrong:
                found[f"{name} on {row.name}"] = f"wrong, off by {result.error:.1e}"
            elif "not installed" in result.skipped:
                found[name] = result.skipped
            elif result.skipped:
                found[f"{name} on {row.name}"] = result.skipped
            elif not result.steady:
                found[f"{name} on {row.name}"] = "unsteady: was the machine busy?"
    return found


def row_line(row: Row) -> Text:
    """One workload, as soon as it is known."""
    times = [
        f"{SHORT.get(n, n)} {milliseconds(r.milliseconds)}"
        for n, r in row.results.items()
        if not r.skipped
    ]
    ratio = "" if row.ratio is None else f"  x{row.ratio:.2f}"
    style = "red" if row.ours.wrong or (row.ratio is not None and row.ratio < 1) else ""
    return Text(f"{row.name}: {', '.join(times)}{ratio}", style=style)
