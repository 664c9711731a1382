"""The page's panel of each kernel: its loop nest as a picture, its numbers, and why it is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ...analysis.melting.records import KernelReport, Melting
from ...analysis.melting.text import formulas_text, number, size
from ...graph import sizes_text
from ...partition.report import Record, Report
from .nest import draw_nest
from .parts import Parts, names


@dataclass(frozen=True)
class Panel:
    """One kernel on the page: `key` is its anchor, `roots` the matches that lead there."""

    key: str
    composite: str
    roots: tuple[str, ...]
    record: Record  # of its first match
    kernel: KernelReport | None
    problem: str = ""


def panels(report: Report, melting: Melting | None) -> list[Panel]:
    """The panels in the order of the matches: one for each kernel, or for each match."""
    matched = {record.root: record for record in report.matched}
    found: list[Panel] = []
    seen: set[str] = set()
    kernels = {root: k for k in (melting.kernels if melting else ()) for root in k.roots}
    failures = {root: f for f in (melting.failures if melting else ()) for root in f.roots}
    for root, record in matched.items():
        if root in seen:
            continue
        kernel, failure = kernels.get(root), failures.get(root)
        source = kernel or failure
        roots = tuple(r for r in source.roots if r in matched) if source else (root,)
        seen.update(roots)
        problem = failure.reason if failure else ""
        found.append(Panel(f"k{len(found)}", record.composite, roots, record, kernel, problem))
    return found


def panel_html(panel: Panel, colour: str, report: Report, parts: Parts) -> str:
    """One panel; it is shown while its anchor is the page's target."""
    kernel = panel.kernel
    found = [
        f'<section class="kernel" id="{panel.key}" style="--own:{colour}">',
        '<a class="close" href="#_">all kernels</a>',
        f"<h2>{escape(panel.composite)}</h2>",
        f"<p>at {_places(panel.key, panel.roots, names(report))}</p>",
        f"<p><b>{parts.amount(panel.roots)}</b>, {escape(parts.percent(panel.roots))} of the "
        f"model's {parts.told}</p>{bar(parts.share(panel.roots))}",
        f"<p><b>Why one kernel:</b> {escape(panel.record.reason)}.</p>",
        _level(panel),
    ]
    if kernel is not None:
        found += [
            _sizes(kernel),
            _numbers(kernel),
            "<h3>Loop nest</h3>",
            _drawn(kernel),
            _key(),
            _ops(kernel),
        ]
    elif panel.problem:
        found.append(f'<p class="problem">Its loop nest is not shown: {escape(panel.problem)}</p>')
    return f"{''.join(found)}{_model(panel.record, report)}</section>"


def bar(share: float) -> str:
    """A share as a line of that length."""
    return f'<em style="width:{100 * share:.1f}%"></em>'


def _places(key: str, roots: Sequence[str], called: Mapping[str, str]) -> str:
    """Its matches, with their names in the source model; a click on one moves the graph there."""
    told = (
        (escape(root), f" ({escape(called[root])})" if root in called else "") for root in roots
    )
    return ", ".join(f'<a href="#{key}" data-at="{root}">{root}</a>{name}' for root, name in told)


def _model(record: Record, report: Report) -> str:
    """The ops of the first match, with their names in the model that was imported."""
    origins, written = dict(report.origins), dict[str, list[str]]()
    for name, _, now in report.absorbed:
        written.setdefault(now, []).append(name)
    rows = "".join(
        f"<tr><td>{escape(op)}</td><td>{escape(origins.get(op, ''))}</td>"
        f"<td>{escape(', '.join(n for n in written.get(op, ()) if n != op))}</td></tr>"
        for op in record.ops
    )
    head = "<tr><th>op</th><th>in the model</th><th>read from</th></tr>"
    return f"<h3>Ops</h3><table>{head}{rows}</table>"


def _drawn(kernel: KernelReport) -> str:
    try:
        return draw_nest(kernel)
    except Exception as err:  # a picture must not break the page
        return f'<p class="problem">No picture: {escape(f"{type(err).__name__}: {err}")}</p>'


def _level(panel: Panel) -> str:
    kernel = panel.kernel
    name = kernel.level.name if kernel else panel.record.level
    reason = kernel.level.reason if kernel else panel.record.level_reason
    text = f"<p><b>Schedule:</b> {escape(name)}: {escape(reason)}.</p>" if name else ""
    plan = kernel.level.plan if kernel else panel.record.plan
    steps = "".join(f"<li>{escape(step)}</li>" for step in plan.split("; "))
    return text + (f"<p><b>Plan:</b></p><ul>{steps}</ul>" if plan else "")


def _sizes(kernel: KernelReport) -> str:
    text = f"Built for every size; numbers and loops are at {sizes_text(kernel.sizes)}."
    every = "".join(f"<li>{escape(line)}</li>" for line in formulas_text(kernel))
    return f"<p>{escape(text)}</p><ul>{every}</ul>" if kernel.sizes else ""


def _numbers(kernel: KernelReport) -> str:
    saved = kernel.traffic_before - kernel.traffic_after
    threads = f"{kernel.threads} thread{'s' if kernel.threads > 1 else ''}"
    rows = [
        ("intermediates as separate ops", size(kernel.bytes_before)),
        (f"in this kernel, {threads}", size(kernel.bytes_after)),
        ("traffic saved" if saved >= 0 else "traffic added", _share(saved, kernel)),
        ("each element computed", f"{kernel.recompute:.3f} times"),
    ]
    if kernel.traffic_copies:
        rows.append(("traffic of copied inputs", size(kernel.traffic_copies)))
    if kernel.work is not None:
        rows.append(("multiply-adds for each needed", f"{kernel.work:.3f}"))
        parts = [(op.name, w) for op in kernel.ops if (w := kernel.work_of(op.name)) is not None]
        if len(parts) > 1:
            name, most = max(parts, key=lambda part: part[1])
            rows.append((f"most for {name}", f"{most:.3f}"))
    rows.append(("operations", f"{number(kernel.flops)}FLOP"))
    rows.append(("operations for each byte", f"{kernel.intensity:.3g}"))
    if (timing := kernel.timing) is not None:
        share = "" if timing.of_peak is None else f", {timing.of_peak:.0%} of peak"
        rows.append(("measured", f"{timing.milliseconds:.3f} ms{share}"))
    cells = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in rows)
    bound = "" if kernel.exact else "<p>Counts are at most what is said.</p>"
    return f'<dl class="two">{cells}</dl>{bound}'


def _share(saved: int, kernel: KernelReport) -> str:
    if not kernel.traffic_before:
        return size(abs(saved))
    return f"{size(abs(saved))} ({abs(saved) / kernel.traffic_before:.0%})"


def _key() -> str:
    return (
        '<p class="key"><i class="stays"></i>stays in the cache '
        '<i class="travels"></i>travels through memory '
        '<i class="parallel"></i>parallel loop</p>'
    )


def _ops(kernel: KernelReport) -> str:
    rows = "".join(
        f'<tr><td class="n">{row.count}</td><td>{escape(row.kind)}</td>'
        f'<td class="n">{number(row.flops)}FLOP</td></tr>'
        for row in kernel.arithmetic
    )
    return f"<h3>Arithmetic</h3><table>{rows}</table>"


def sums(melting: Melting | None) -> Sequence[tuple[str, str]]:
    """What all kernels of the model save together."""
    if melting is None or not melting.kernels:
        return ()

    def total(name: str) -> int:
        return sum(getattr(k, name) * k.count for k in melting.kernels)

    saved = total("traffic_before") - total("traffic_after")
    return (
        ("intermediates inside, as separate ops", size(total("bytes_before"))),
        ("their traffic as separate ops", size(total("traffic_before"))),
        ("saved" if saved >= 0 else "added", size(abs(saved))),
        ("padded and packed copies", size(total("traffic_copies"))),
        ("operations in composites", f"{number(total('flops'))}FLOP"),
    )
