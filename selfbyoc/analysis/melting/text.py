"""The melting report as text, for a terminal of 100 columns."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from ...graph import sizes_text
from .loop_nest import Nest, Row, rows, scope_text, stage_text
from .outside import text as outside_text
from .placement import Placement

if TYPE_CHECKING:
    from .records import KernelReport, Melting

WIDTH = 100
RULE = (
    "An intermediate travels through memory if it lies at the root, between two loops, or if its "
    "tile is larger than 1 MiB; it does not if it is a tile under a loop that its reader shares. "
    "Padded and packed copies of inputs are told apart: separate ops make theirs too. "
    "A multiply-add is 2 operations."
)


def size(count: float) -> str:
    """`6.42 MB`, in decimal units."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def number(count: float) -> str:
    """`1.03 G`, in decimal units."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} "


def text(report: Melting) -> str:
    """All kernels, and those that could not be analysed."""
    parts = [kernel_text(kernel) for kernel in report.kernels]
    parts += [f"{f.composite} {f.symbol}: not analysed: {f.reason}" for f in report.failures]
    if report.outside:
        kernels = sum(k.count * k.timing.milliseconds for k in report.kernels if k.timing)
        parts.append("\n".join(outside_text(report.outside, kernels)))
    if report.peak is not None:
        noise = "" if report.peak.quiet else " (it was busy)"
        parts.append(f"Peak of this machine{noise}, measured: {report.peak.gflops:.0f} GFLOP/s.")
    return "\n\n".join([*(parts or ["No kernels."]), "\n".join(wrap(RULE, WIDTH))])


def kernel_text(kernel: KernelReport) -> str:
    """One kernel: what it is, its loop nest, its intermediates, its numbers."""
    return "\n".join(
        [
            *_head(kernel),
            *(f"  {line}" for line in nest_text(kernel.nest, WIDTH - 2)),
            *_section("where each intermediate is", _placed(kernel)),
            *_section("numbers", _numbers(kernel)),
            *_section("arithmetic", _arithmetic(kernel)),
            *_section("for every size", _formulas(kernel)),
        ]
    )


def _head(kernel: KernelReport) -> Iterator[str]:
    where = f" at {kernel.roots[0]}" if kernel.roots else ""
    times = f" and {kernel.count - 1} more like it" if kernel.count > 1 else ""
    yield f"{kernel.composite or kernel.symbol}{where}{times}: {kernel.level.name}"
    yield from (f"  {line}" for line in wrap(kernel.why, WIDTH - 2))
    if kernel.sizes:
        yield from (f"  {line}" for line in wrap(at_text(kernel), WIDTH - 2))
    if kernel.level.plan:
        yield from (f"  {line}" for line in wrap(f"plan: {kernel.level.plan}", WIDTH - 2))
    if kernel.ops:
        ops = " -> ".join(op.name for op in kernel.ops)
        yield from (f"  {line}" for line in wrap(f"ops: {ops}", WIDTH - 2))


def at_text(kernel: KernelReport) -> str:
    """At which sizes of its symbols a kernel is reported."""
    text = f"at {sizes_text(kernel.sizes)}"
    if not kernel.examples:
        return text
    names = "" if len(kernel.examples) == len(kernel.sizes) else f" of {', '.join(kernel.examples)}"
    asking = f"sizes={{{kernel.examples[0]!r}: ...}}, or --size {kernel.examples[0]}=..."
    return f"{text}, an example{names}; {asking}, asks for others"


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"  {title}:", *(f"    {line}" for line in lines)] if lines else []


def nest_text(nest: Nest, width: int) -> list[str]:
    """The drawing in so many columns: what a stage does goes on below where it is long."""
    drawn = rows(nest)
    column = 2 + max((2 * r.depth + len(str(r.stage)) for r in drawn if r.stage), default=0)
    return [line for row in drawn for line in _drawn(row, column, width)]


def _drawn(row: Row, column: int, width: int) -> Iterator[str]:
    start = "  " * row.depth
    if row.stage is None:
        yield f"{start}{scope_text(row.loops)}:"
        return
    first, *more = wrap(stage_text(row.stage, row.loops), width - column)
    yield f"{start}{row.stage}".ljust(column) + first
    yield from (" " * column + line for line in more)


def _placed(kernel: KernelReport) -> list[str]:
    shown = [p for p in kernel.placements if not p.in_registers]
    cells = [(p.buffer.name, _bytes(p, kernel.threads), str(p)) for p in shown]
    widths = [max((len(row[i]) for row in cells), default=0) for i in range(2)]
    lines = []
    for name, bytes_, where in cells:
        start = f"{name.ljust(widths[0])}  {bytes_.rjust(widths[1])}  "
        lines += wrap(start + where, WIDTH - 4, subsequent_indent=" " * len(start))
    tiles = [p for p in kernel.placements if p.in_registers]
    if tiles:
        names = ", ".join(dict.fromkeys(p.producer.name for p in tiles))
        lines += wrap(f"accumulated in local tiles: {names}", WIDTH - 4)
    return lines + wrap(_inlined(kernel), WIDTH - 4)


def _bytes(place: Placement, threads: int) -> str:
    copies = min(place.buffer.tasks, threads)
    stack = " on the stack" if place.buffer.memory == "stack" else ""
    return f"{size(place.buffer.bytes)}{stack}{f' x {copies} threads' if copies > 1 else ''}"


def _inlined(kernel: KernelReport) -> str:
    """The ops whose every block was inlined, by the op that they are computed in."""
    if kernel.own_compute:
        return ""
    there = {stage.op for stage in kernel.nest.stages}
    inside: dict[str, list[str]] = {}
    for op in kernel.ops:
        if op.name not in there:
            inside.setdefault(op.within or "their readers", []).append(op.name)
    return "; ".join(f"inlined into {into}: {', '.join(names)}" for into, names in inside.items())


def _numbers(kernel: KernelReport) -> list[str]:
    most = "" if kernel.exact else " at most"
    lines = [
        *_memory(kernel),
        f"computed again   {most} {kernel.recompute:.3f} times each element of a stage"
        + _repeated(kernel),
    ]
    if kernel.work is not None:
        parts = [(op.name, kernel.work_of(op.name)) for op in kernel.ops]
        each = ", ".join(f"{name} {w:.3f}" for name, w in parts if w is not None)
        lines.append(
            f"multiply-adds    {most} {kernel.work:.3f} for each that the ops ask for"
            + (f" ({each})" if each else "")
        )
    rate = f"{kernel.intensity:.3g} for each byte moved"
    if kernel.ops:  # a function that was not stacked has no op info
        lines.append(f"operations        {number(kernel.flops)}FLOP, {rate}")
    if (t := kernel.timing) is not None:
        of_peak = "" if t.of_peak is None else f", {t.of_peak:.0%} of peak"
        noise = "" if t.quiet else " (the machine was busy)"
        alone = ", built for these sizes alone" if kernel.sizes else ""
        rate = f"{t.gflops:.0f} GFLOP/s{of_peak}"
        lines.append(f"measured          {t.milliseconds:.3f} ms, {rate}{alone}{noise}")
    return [part for line in lines for part in wrap(line, WIDTH - 4, subsequent_indent=" " * 18)]


def _memory(kernel: KernelReport) -> Iterator[str]:
    threads = f" ({kernel.threads} threads)" if kernel.threads > 1 else ""
    inside = f"{size(kernel.bytes_after)} in this kernel{threads}"
    if not kernel.intermediates:
        yield f"intermediates     none between ops, {inside}"
    else:
        yield f"intermediates     {size(kernel.bytes_before)} as separate ops, {inside}"
    saved = kernel.traffic_before - kernel.traffic_after
    share = f" ({abs(saved) / kernel.traffic_before:.0%})" if kernel.traffic_before else ""
    copies = f"; copies of inputs {size(kernel.traffic_copies)}" if kernel.traffic_copies else ""
    if kernel.intermediates or saved or copies:
        yield (
            f"their traffic     {size(kernel.traffic_before)} as separate ops, "
            f"{size(kernel.traffic_after)} in this kernel: {size(abs(saved))}{share} "
            f"{'saved' if saved >= 0 else 'more'}{copies}"
        )


def _repeated(kernel: KernelReport) -> str:
    found = [f"{s.name} {s.recompute:.3f}" for s in kernel.nest.stages if s.recompute > 1]
    return f": {', '.join(found)}" if found else ""


def formulas_text(kernel: KernelReport) -> list[str]:
    """What is known of every size, a line for each."""
    told = {
        "bytes_before": ("intermediates", " bytes as separate ops"),
        "traffic_before": ("their traffic", " bytes as separate ops"),
        "flops": ("operations", ""),
    }
    return [
        f"{name:17} {kernel.formulas[key]}{unit}"
        for key, (name, unit) in told.items()
        if key in kernel.formulas and kernel.formulas[key].terms
    ]


def _formulas(kernel: KernelReport) -> list[str]:
    lines = formulas_text(kernel)
    return [part for line in lines for part in wrap(line, WIDTH - 4, subsequent_indent=" " * 18)]


def _arithmetic(kernel: KernelReport) -> list[str]:
    return [
        f"{row.count:3} x {row.kind:18} {number(row.flops):>8}FLOP" for row in kernel.arithmetic
    ]
