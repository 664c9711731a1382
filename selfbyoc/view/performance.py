"""The benchmark as Markdown: what `docs/performance.md` holds between its markers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ..bench.limits import limit
from ..bench.records import OURS, Report, Row, compared, geometric_mean, ratios, worst
from .bench_tables import SHORT, TITLES, milliseconds, names


def markdown(report: Report) -> str:
    """Machine, versions, method, a table for each group, means and the worst of the sweep."""
    parts = [_facts(report), _method(report)]
    for group, title in TITLES.items():
        rows = report.group(group)
        if rows:
            parts += [f"**{title}**", _table(report, rows), _means(rows)]
    last = worst(report.group("sweep"))
    if last:
        parts += ["The worst of the sweep:", "\n".join(f"- {_one(row)}" for row in last)]
    disturbed = ", ".join(row.name for row in report.rows if row.disturbed)
    if disturbed:
        parts.append(f"Measured while somebody else computed too: {disturbed}.")
    lost = [row for row in report.rows if row.ratio is not None and row.ratio < 1]
    text = "; ".join(f"{row.name} ({row.ratio:.2f}, {row.best_peer})" for row in lost)
    parts.append(f"Lost: {text or 'nothing'}.")
    return "\n\n".join(parts) + "\n"


def _facts(report: Report) -> str:
    facts = ", ".join(f"{name}: {value}" for name, value in report.facts.items())
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return f"{facts}. {report.threads} threads each. {versions}."


def _method(report: Report) -> str:
    m, roof = report.method, report.roofs[-1]
    rates = ", ".join(f"{rate:.0f} GB/s from {level}" for level, rate in roof.bandwidth.items())
    peaks = ", ".join(f"{r.gflops:.0f} GFLOP/s on {r.threads}" for r in report.roofs)
    return (
        f"Medians over the faster half of {m['windows']:g} windows of {1e3 * m['seconds']:g} ms in "
        f"{m['turns']:g} turns; of {m['builds']:g} builds each the best. Measured: multiply-adds "
        f"{peaks} threads, {rates}, a parallel kernel that does nothing {roof.launch:.1f} us."
    )


def _table(report: Report, rows: Sequence[Row]) -> str:
    shown = names(rows)
    titles = [f"{SHORT.get(n, n)}, ms" if n == OURS else SHORT.get(n, n) for n in shown]
    head = ["workload", *titles, compared(rows), "of peak", "limit", "error", "peers' error"]
    lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)])]
    return "\n".join([*lines, *(_line(_cells(report, row, shown)) for row in rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(report: Report, row: Row, shown: Sequence[str]) -> list[str]:
    """The best peer is bold."""
    cells = [row.name]
    for name in shown:
        result = row.results.get(name)
        known = result is not None and not result.skipped
        text = milliseconds(result.milliseconds) if result is not None and known else "-"
        cells.append(f"**{text}**" if name == row.best_peer else text)
    share = 100 * row.gflops() / report.peak if row.ours.counts else math.nan
    cells.append("-" if row.ratio is None else f"{row.ratio:.2f}")
    cells.append("-" if math.isnan(share) else f"{share:.0f}%")
    peers = [r.relative for n, r in row.results.items() if n != OURS and r.counts]
    errors = (row.ours.relative, max((e for e in peers if not math.isnan(e)), default=math.nan))
    return [*cells, limit(row, report), *("-" if math.isnan(e) else f"{e:.0e}" for e in errors)]


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
