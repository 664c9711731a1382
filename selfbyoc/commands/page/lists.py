"""The lists of the page: kernels by composite, what nearly was one, what is left, latencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from ...analysis.explain.grouping import Group
from ...analysis.melting.outside import Outside
from ...partition.report import Report
from ..summary import Left, taken
from .drawing import colours
from .panels import Panel, bar
from .parts import Parts, names, percent


def kernels(report: Report, found: Sequence[Panel], parts: Parts) -> str:
    """The composites, those with the largest part of the model first; each opens on a click."""
    by_composite: dict[str, list[Panel]] = {}
    for panel in found:
        by_composite.setdefault(panel.composite, []).append(panel)
    why, palette = {row.composite: row.why for row in taken(report)}, colours(report)
    shares = {n: parts.share(r for p in ps for r in p.roots) for n, ps in by_composite.items()}
    rows = [
        f'<details style="--own:{palette[name]}"><summary><i></i><b>{escape(name)}</b>'
        f"<span>{sum(len(p.roots) for p in by_composite[name])}</span>"
        f"<span>{escape(percent(shares[name]))}</span>{bar(shares[name])}</summary>"
        f"<p>{escape(why[name])}</p><table>"
        f"{''.join(_kernels(by_composite[name], parts, names(report)))}</table></details>"
        for name in sorted(by_composite, key=lambda name: -shares[name])
    ]
    head = (
        f'<p class="head"><span></span><b>composite</b><span>kernels</span>'
        f"<span>{parts.told}</span></p>"
    )
    return head + "".join(rows) if rows else "<p>nothing matched</p>"


def _kernels(found: Sequence[Panel], parts: Parts, told: Mapping[str, str]) -> Iterator[str]:
    """Links to the panels, the largest part first."""
    for panel in sorted(found, key=lambda p: -parts.sum(p.roots)):
        root, others = panel.roots[0], len(panel.roots) - 1
        yield (
            f'<tr><td><a href="#{panel.key}">{escape(root)}</a>'
            f"{f' and {others} more' if others else ''}"
            f"<small>{escape(told.get(root, ''))}</small></td>"
            f"<td>{parts.amount(panel.roots)}</td><td>{escape(parts.percent(panel.roots))}</td></tr>"
        )


def near(groups: Sequence[Group]) -> str:
    """What nearly became a kernel, by composite; each opens on a click."""
    by_composite: dict[str, list[Group]] = {}
    for group in groups:
        by_composite.setdefault(group.composite, []).append(group)
    found = [
        f"<details><summary><b>{escape(name)}</b> {sum(g.count for g in missed)}</summary><ul>"
        f"{''.join(map(_miss, missed))}</ul></details>"
        for name, missed in by_composite.items()
    ]
    return f"<h2>Nearly a kernel</h2>{''.join(found)}" if found else ""


def _miss(group: Group) -> str:
    hint = f" ({group.hint})" if group.hint else ""
    roots = ", ".join(group.roots)
    return f"<li>{escape(group.reason + hint)}<small>at {escape(roots)}</small></li>"


def left(rows: Sequence[Left], outside: Sequence[Outside], parts: Parts) -> str:
    """Ops that no composite took, and how long TVM's functions of them take, if that is known."""
    by_kind: dict[str, list[Left]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    found = "".join(
        f"<details><summary><i></i><b>{escape(kind)}</b><span>{sum(r.count for r in those)}</span>"
        f"<span>{escape(percent(sum(r.share for r in those)))}</span></summary>"
        f"{''.join(_reason(row, len(those) > 1) for row in those)}</details>"
        for kind, those in by_kind.items()
    )
    head = '<p class="head"><span></span><b>op</b><span>ops</span><span>bytes</span></p>'
    return (head + found if rows else "<p>nothing</p>") + _functions(outside, parts)


def _reason(row: Left, is_one_of_several: bool) -> str:
    count = f"<b>{row.count}</b> " if is_one_of_several else ""
    return f"<p>{count}{escape(row.why)}</p><p>{escape(row.cost)}</p>"


def _functions(outside: Sequence[Outside], parts: Parts) -> str:
    rows = "".join(
        f"<tr><td>{escape(each.name)}</td><td>{each.milliseconds:.3f} ms</td>"
        f"<td>{each.milliseconds / parts.total:.1%}</td></tr>"
        for each in outside
        if each.milliseconds
    )
    head = "<details><summary><i></i><b>their time, as TVM's functions</b></summary>"
    return f"{head}<table>{rows}</table></details>" if rows else ""


def latencies(bars: Sequence[tuple[str, float]], ours: str) -> str:
    """Against each other; the slowest is as wide as the column."""
    longest = max((ms for _, ms in bars), default=1.0)
    found = [
        f'<div class="bar{" ours" * (name == ours)}"><span>{escape(name)}</span>'
        f"<b>{ms:,.1f} ms</b>{bar(ms / longest)}</div>"
        for name, ms in bars
    ]
    return "<h2>Latency</h2>" + "".join(found) if bars else ""


def facts(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Names and numbers."""
    found = [f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in rows]
    return f"<h2>{title}</h2><dl>{''.join(found)}</dl>" if rows else ""
