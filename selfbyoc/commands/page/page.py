"""One self-contained HTML page: a model's graph with its composites, and the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template

from ...analysis.explain.grouping import nearly
from ...analysis.melting.records import Melting
from ...graph import OpGraph
from ...partition.report import Report
from ...printable import counted
from ..summary import Left
from . import lists
from .drawing import colours, draw
from .panels import panel_html, panels, sums
from .parts import Parts, parts

MANY = 150  # ops of a network whose kernels are shown as one node each at first


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
    """The page as HTML; it loads nothing. With `melting`, each kernel's panel draws its loops; with
    a melting report that was timed, kernels have their times.
    """
    found, palette, part = panels(report, melting), colours(report), parts(report, melting)
    links = {root: panel.key for panel in found for root in panel.roots}
    notes = {root: text for root in links if (text := part.text(root))}
    drawings = [draw(graph, report, links, notes, by_kernel) for by_kernel in (True, False)]
    outside = melting.outside if melting else ()
    numbers = lists.latencies(page.bars, page.ours) + lists.facts("Checked", page.facts)
    return Template(_file("page.html")).substitute(
        style=_file("page.css"),
        script=_file("page.js"),
        title=escape(page.title),
        subtitle=escape(page.subtitle),
        sums=escape(_sums(report, part) + _sizes(report)),
        numbers=numbers,
        kernels=lists.kernels(report, found, part),
        left=lists.left(page.left, outside, part),
        near=lists.near(nearly(report)),
        melted=lists.facts("Melted", sums(melting)),
        first="kernels" if len(report.ops) > MANY else "ops",
        by_kernel=drawings[0],
        by_op=drawings[1],
        panels="".join(panel_html(p, palette[p.composite], report, part) for p in found),
    )


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _sizes(report: Report) -> str:
    return f" Sizes are symbolic: all figures and loops are at {report.at}." if report.at else ""


def _sums(report: Report, part: Parts) -> str:
    inside = sum(1 for _, _, owner in report.ops if owner)
    count = len(report.matched)
    text = (
        f"{counted(count, 'kernel')} hold{'s' * (count == 1)} {inside} of the model's "
        f"{len(report.ops)} ops"
    )
    share = part.share(part.of)
    if part.is_time:
        busy = "" if part.is_quiet else " The machine was busy."
        if part.sum(part.of) == part.total and report.left:  # Relay: TOPI schedules what is left
            rest = "What is left was not measured."
            return f"{text} and take {part.total:.2f} ms, each measured alone. {rest}{busy}"
        return f"{text} and take {share:.0%} of {part.total:.2f} ms, each measured alone.{busy}"
    return f"{text} and {share:.0%} of its operations. No times: explain --time measures."
