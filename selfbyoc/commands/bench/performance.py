"""The benchmark as Markdown: what docs/makers/performance-tables.md holds between its markers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .length_tables import OVER_STATIC, length_lines
from .lengths import LENGTHS
from .limits import limit
from .means import compared, geometric_mean, ratios, worst
from .quantised import LEVELS
from .records import OURS, STATIC, Report, Row
from .tables import OVER_FLOATS, SHORT, TITLES, milliseconds, names, over_floats, percent


def markdown(report: Report) -> str:
    """Machine, versions, method, a table for each group, means and the worst of the sweep."""
    parts = [_facts(report), _method(report)]
    for group, title in TITLES.items():
        rows = report.group(group)
        if rows:
            parts += [f"**{title}**", _table(report, rows), _means(rows)]
    floats = over_floats(report)
    if floats:
        text = f"geometric mean {geometric_mean(floats):.2f}, lowest {min(floats):.2f}"
        parts.append(f"In int8 beside our own floats: {text}.")
    lengths = report.group(LENGTHS)
    if lengths:
        lines = "\n".join(f"- {line}" for line in length_lines(lengths))
        parts += ["**Lengths, built once**", _length_table(lengths), lines]
    last = worst(report.group("sweep"))
    if last:
        parts += ["The worst of the sweep:", "\n".join(f"- {_one(row)}" for row in last)]
    disturbed = ", ".join(row.name for row in report.rows if row.disturbed)
    if disturbed:
        parts.append(f"Measured while somebody else computed too: {disturbed}.")
    lost = [row for row in report.rows if row.ratio is not None and row.ratio < 1]
    text = "; ".join(f"{row.name} ({row.ratio:.2f}, {row.best_peer})" for row in lost)
    parts.append(f"Lost: {text or 'nothing'}.")
    parts += [f"{row.name}: {row.unchecked}." for row in report.rows if row.unchecked]
    return "\n\n".join(parts) + "\n"


def _facts(report: Report) -> str:
    facts = ", ".join(f"{name}: {value}" for name, value in report.facts.items())
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    built = f"built for {report.target}, {report.threads} threads each"
    return f"{facts}; {built}. {versions}."


def _method(report: Report) -> str:
    m, roof = report.method, report.roofs[-1]
    rates = ", ".join(f"{rate:.0f} GB/s from {level}" for level, rate in roof.bandwidth.items())
    peaks = ", ".join(f"{r.gflops:.0f} GFLOP/s on {r.threads}" for r in report.roofs)
    if not math.isnan(roof.gops):
        peaks += f" and {roof.gops:.0f} GOP/s of bytes on {roof.threads}"
    return (
        f"Medians over the faster half of {m['windows']:g} windows of {1e3 * m['seconds']:g} ms in "
        f"{m['turns']:g} turns; of {m['builds']:g} builds each the best. Measured: multiply-adds "
        f"{peaks} threads, {rates}, a parallel kernel that does nothing {roof.launch:.1f} us."
    )


def _table(report: Report, rows: Sequence[Row]) -> str:
    shown = [name for name in names(rows) if name != OURS]
    head = [
        "workload", "MFLOP", "ours, ms", "of peak", "best peer, ms", "of peak", "peer",
        compared(rows), *([OVER_FLOATS] if rows[0].group == LEVELS else []),
        *(SHORT.get(n, n) for n in shown), "limit", "error", "peers' error",
    ]  # fmt: skip
    lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)])]
    return "\n".join([*lines, *(_line(_cells(report, row, shown)) for row in rows)])


def _length_table(rows: Sequence[Row]) -> str:
    """A row for each length, ours beside our own build for it and beside the best peer."""
    others = [name for name in names(rows) if name not in (OURS, STATIC)]
    head = ["workload", "ours, ms", "static, ms", OVER_STATIC, compared(rows), "peer"]
    head += [SHORT.get(n, n) for n in others]
    lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)])]
    for row in rows:
        cells = [row.name, _time(row, OURS), _time(row, STATIC), _ratio(row.static_ratio)]
        cells += [_ratio(row.ratio), row.best_peer or "-", *(_time(row, n) for n in others)]
        lines.append(_line(cells))
    return "\n".join(lines)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(report: Report, row: Row, shown: Sequence[str]) -> list[str]:
    """The best peer's time stands beside ours, and in bold among the peers'."""
    best = row.best_peer
    cells = [row.name, f"{1e-6 * row.flops:.4g}" if row.flops else "-"]
    cells += [_time(row, OURS), percent(report.share(row))]
    cells += [_time(row, best), percent(report.share(row, best)), best or "-"]
    cells.append(_ratio(row.ratio))
    if row.floats:
        cells.append(_ratio(report.over_floats(row)))
    cells += [f"**{_time(row, n)}**" if n == best else _time(row, n) for n in shown]
    peers = [r.relative for n, r in row.results.items() if n != OURS and r.counts]
    errors = (row.ours.relative, max((e for e in peers if not math.isnan(e)), default=math.nan))
    return [*cells, limit(row, report), *("-" if math.isnan(e) else f"{e:.0e}" for e in errors)]


def _time(row: Row, name: str | None) -> str:
    """In milliseconds; with a mark where the result is wrong, a dash where there is none."""
    result = row.results.get(name or "")
    if result is None or result.skipped:
        return "-"
    return milliseconds(result.milliseconds) + "!" * result.wrong


def _means(rows: Sequence[Row]) -> str:
    found = ratios(rows)
    mean = geometric_mean(found)
    return f"Geometric mean {mean:.2f}, lowest {min(found):.2f}." if found else "No peer took part."


def _one(row: Row) -> str:
    best = row.results[row.best_peer or OURS]
    times = f"{milliseconds(row.ours.milliseconds)} ms, {row.best_peer} "
    return f"{row.name}: {row.ratio:.2f} ({times}{milliseconds(best.milliseconds)} ms)"


def text_between(text: str, name: str, content: str) -> str:
    """A document with `content` between `<!-- name -->` and `<!-- end name -->`."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}\n{content}\n{found[2]}", text)


def between(text: str, name: str) -> str:
    """What a document holds between `<!-- name -->` and `<!-- end name -->`."""
    return text.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end {name} -->")[0]
