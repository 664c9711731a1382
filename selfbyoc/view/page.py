"""One self-contained HTML page: a model's graph with its composites, and the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template

from ..analysis.explain.grouping import Group, nearly
from ..analysis.melting.records import Melting
from ..graph import OpGraph
from ..partition.report import Report
from .drawing import colours, draw
from .panels import Panel, panel_html, panels, sums
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


def render(page: Page, graph: OpGraph, report: Report, melting: Melting | None = None) -> str:
    """The page as HTML; it loads nothing. With `melting`, each kernel's panel draws its loops."""
    found, palette = panels(report, melting), colours(report)
    links = {root: panel.key for panel in found for root in panel.roots}
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(page.title),
        subtitle=escape(page.subtitle),
        numbers=_bars(page) + _list("Checked", page.facts) + _list("Melted", sums(melting)),
        legend=_legend(report, found),
        left="".join(map(_left, page.left)) or "<tr><td>nothing</td></tr>",
        near=_near(nearly(report)),
        graph=draw(graph, report, links),
        panels="".join(panel_html(panel, palette[panel.composite]) for panel in found),
    )


def _legend(report: Report, found: Sequence[Panel]) -> str:
    palette = colours(report)
    rows = [
        f'<tr><td><i style="background:{palette[r.composite]}"></i></td>'
        f'<td class="n">{r.count}</td>'
        f"<td><b>{escape(r.composite)}</b><small>{escape(r.why)}</small>"
        f"{_kernels([p for p in found if p.composite == r.composite])}</td></tr>"
        for r in taken(report)
    ]
    return "".join(rows) or "<tr><td>nothing matched</td></tr>"


def _kernels(found: Sequence[Panel]) -> str:
    """Links to a composite's panels, by the first root of each."""
    links = [
        f'<a href="#{p.key}">{escape(p.roots[0])}</a>'
        + (f"&thinsp;({len(p.roots)})" if len(p.roots) > 1 else "")
        for p in found
    ]
    return f"<nobr>{'</nobr>, <nobr>'.join(links)}</nobr>"


def _near(groups: Sequence[Group]) -> str:
    """What nearly became a kernel, by composite; each opens on a click."""
    by_composite: dict[str, list[Group]] = {}
    for group in groups:
        by_composite.setdefault(group.composite, []).append(group)
    parts = [
        f"<details><summary><b>{escape(name)}</b> {sum(g.count for g in found)}</summary><ul>"
        f"{''.join(map(_miss, found))}</ul></details>"
        for name, found in by_composite.items()
    ]
    return f"<h2>Nearly a kernel</h2>{''.join(parts)}" if parts else ""


def _miss(group: Group) -> str:
    hint = f" ({group.hint})" if group.hint else ""
    roots = ", ".join(group.roots)
    return f"<li>{escape(group.reason + hint)}<small>at {escape(roots)}</small></li>"


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


def _list(title: str, facts: Sequence[tuple[str, str]]) -> str:
    rows = [f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts]
    return f"<h2>{title}</h2><dl>{''.join(rows)}</dl>" if rows else ""
