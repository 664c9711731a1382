"""One self-contained HTML page: a model's graph with its composites, and the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template

from ..ir.graph import OpGraph
from ..partition.report import Report
from .drawing import colours, draw
from .summary import Left, taken


@dataclass(frozen=True)
class Page:
    """What the page tells."""

    title: str
    subtitle: str
    left: Sequence[Left]
    bars: Sequence[tuple[str, float]] = ()  # (name, milliseconds)
    ours: str = ""  # the bar that stands out
    facts: Sequence[tuple[str, str]] = field(default_factory=tuple)


def render(page: Page, graph: OpGraph, report: Report) -> str:
    """The page as HTML; it loads nothing."""
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(page.title),
        subtitle=escape(page.subtitle),
        numbers=_bars(page) + _facts(page),
        legend=_legend(report),
        left="".join(_left(row) for row in page.left),
        graph=draw(graph, report),
    )


def _legend(report: Report) -> str:
    palette = colours(report)
    rows = [
        f'<tr><td><i style="background:{palette[r.composite]}"></i></td>'
        f'<td class="n">{r.count}</td>'
        f"<td><b>{escape(r.composite)}</b><small>{escape(r.why)}</small></td></tr>"
        for r in taken(report)
    ]
    return "".join(rows) or "<tr><td>nothing matched</td></tr>"


def _left(row: Left) -> str:
    cells = f"<b>{escape(row.kind)}</b><small>{escape(row.why)}</small>"
    return f'<tr><td><i class="left"></i></td><td class="n">{row.count}</td><td>{cells}</td></tr>'


def _bars(page: Page) -> str:
    """Latencies against each other; the slowest is as wide as the column."""
    longest = max((ms for _, ms in page.bars), default=1.0)
    bars = [
        f'<div class="bar{" ours" * (name == page.ours)}">'
        f"<span>{escape(name)}</span><b>{ms:,.1f} ms</b>"
        f'<div><i style="width:{max(0.6, 100 * ms / longest):.2f}%"></i></div></div>'
        for name, ms in page.bars
    ]
    return "<h2>Latency</h2>" + "".join(bars) if bars else ""


def _facts(page: Page) -> str:
    rows = [f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in page.facts]
    return f"<h2>Checked</h2><dl>{''.join(rows)}</dl>" if rows else ""
