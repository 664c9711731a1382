"""A kernel's loop nest as a picture: boxes for loops, blocks for stages, arrows for values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from ...analysis.melting.loop_nest import PARALLEL, Row, Stage, rows, scope_text, stage_text
from ...analysis.melting.placement import Placement
from ...analysis.melting.records import KernelReport
from ...analysis.melting.text import size
from .drawing import FAINT, INK, PALETTE

WIDTH, GUTTER, INDENT = 600, 64, 12  # of the boxes, of the arrows beside them, of each loop
HEADER, STAGE, GAP = 21, 38, 6
STAYS, TRAVELS = "#228833", "#cc3311"
SMALL, LETTER = 10.5, 5.6  # font size in pixels, and what a letter of it takes on average
_BLUE, _GREY = "#4477aa", "#7b8794"


@dataclass
class _Canvas:
    """SVG elements from the back to the front, and how far down they go."""

    back: list[str] = field(default_factory=list)
    front: list[str] = field(default_factory=list)
    bottom: float = 2
    open: list[tuple[int, float, bool]] = field(default_factory=list)  # depth, top, parallel
    at: dict[Stage, tuple[float, float]] = field(default_factory=dict)  # stage -> its right edge


def draw_nest(kernel: KernelReport) -> str:
    """The picture as an <svg> element."""
    canvas, colours = _Canvas(), _colours(kernel)
    written = {p.producer: p for p in kernel.placements}
    for row in rows(kernel.nest):
        _close(canvas, row.depth)
        if row.stage is None:
            _scope(canvas, row)
        else:
            _stage(canvas, row, colours, written.get(row.stage), kernel.threads)
    _close(canvas, 0)
    _arrows(canvas, [p for p in kernel.placements if not p.in_registers])
    height, width = canvas.bottom + 2, WIDTH + GUTTER
    return (
        f'<svg class="nest" viewBox="0 0 {width} {height:.0f}" width="{width}" role="img">'
        f"<title>loop nest of {escape(kernel.composite)}</title>"
        f"{''.join(reversed(canvas.back))}{''.join(canvas.front)}</svg>"
    )


def _colours(kernel: KernelReport) -> dict[str, str]:
    """One colour for each op; for each stage, where one compute made them all."""
    names = dict.fromkeys(_owner(row) for row in rows(kernel.nest) if row.stage is not None)
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def _owner(row: Row) -> str:
    assert row.stage is not None
    return row.stage.op or row.stage.name


def _left(depth: int) -> float:
    return 1 + depth * INDENT


def _scope(canvas: _Canvas, row: Row) -> None:
    parallel = row.loops[0].kind == PARALLEL
    colour = _BLUE if parallel else _GREY
    x, y = _left(row.depth), canvas.bottom
    canvas.open.append((row.depth, y, parallel))
    text = _cut(scope_text(row.loops), WIDTH - 2 * x - 16)
    canvas.front.append(_text(x + 8, y + 14.5, text, colour, SMALL, bold=True))
    canvas.bottom = y + HEADER


def _close(canvas: _Canvas, depth: int) -> None:
    """End the loops that the next row is not under."""
    while canvas.open and canvas.open[-1][0] >= depth:
        level, top, parallel = canvas.open.pop()
        colour, x = (_BLUE if parallel else _GREY), _left(level)
        canvas.back.append(
            f'<rect x="{x}" y="{top}" width="{WIDTH - 2 * x}" height="{canvas.bottom - top:.0f}" '
            f'rx="6" fill="{colour}" fill-opacity="0.06" stroke="{colour}" stroke-opacity="0.7"/>'
        )
        canvas.bottom += GAP


def _stage(
    canvas: _Canvas, row: Row, colours: dict[str, str], place: Placement | None, threads: int
) -> None:
    stage = row.stage
    assert stage is not None
    colour, x, y = colours[_owner(row)], _left(row.depth), canvas.bottom
    width = WIDTH - 2 * x
    detail, held = stage_text(stage, row.loops), _held(place, threads)
    op = f" · {stage.op}" if stage.op and stage.op != stage.name else ""
    canvas.front.append(
        f"<g><title>{escape(f'{stage}{op}: {detail}')}</title>"
        f'<rect x="{x}" y="{y}" width="{width}" height="{STAGE}" rx="5" fill="white"/>'
        f'<rect x="{x}" y="{y}" width="{width}" height="{STAGE}" rx="5" fill="{colour}" '
        f'fill-opacity="0.16"/><rect x="{x}" y="{y}" width="4" height="{STAGE}" rx="2" '
        f'fill="{colour}"/>'
        + _text(x + 12, y + 15.5, str(stage) + op, INK, 12, bold=True)
        + _text(x + 12, y + 30, _cut(detail, width - 24), "#52606d", SMALL)
        + (_text(x + width - 8, y + 15.5, *held, SMALL, end=True) if held else "")
        + "</g>"
    )
    canvas.at[stage] = (x + width, y + STAGE / 2)
    canvas.bottom = y + STAGE + GAP


def _held(place: Placement | None, threads: int) -> tuple[str, str] | None:
    """What a stage's value takes, and its colour."""
    if place is None:
        return None
    if place.in_registers:
        return f"{size(place.buffer.bytes)} tile", FAINT
    copies = min(place.buffer.tasks, threads)
    text = size(place.buffer.bytes) + (f" × {copies}" if copies > 1 else "")  # noqa: RUF001
    return text, TRAVELS if place.travels else STAYS


def _arrows(canvas: _Canvas, places: Sequence[Placement]) -> None:
    """From each value's producer to its readers; the longer, the further out."""
    ends = [
        (canvas.at[p.producer], canvas.at[reader], p)
        for p in places
        for reader in p.consumers
        if p.producer in canvas.at and reader in canvas.at
    ]
    lanes: list[list[tuple[float, float]]] = []
    for start, end, place in sorted(ends, key=lambda e: abs(e[1][1] - e[0][1])):
        low, high = sorted((start[1], end[1]))
        lane = next(
            (i for i, taken in enumerate(lanes) if all(high <= a or b <= low for a, b in taken)),
            len(lanes),
        )
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append((low, high))
        out = WIDTH + min(10 + 9 * lane, GUTTER - 4)
        canvas.front.append(_arrow(start, end, out, place))


def _arrow(
    start: tuple[float, float], end: tuple[float, float], out: float, place: Placement
) -> str:
    colour = TRAVELS if place.travels else STAYS
    (x1, y1), (x2, y2) = start, end
    y1, y2 = y1 + 5, y2 - 5  # one value comes in above where the other goes out
    path = f"M{x1} {y1}C{out} {y1} {out} {y1} {out} {(y1 + y2) / 2}"
    path += f"C{out} {y2} {out} {y2} {x2 + 5} {y2}"
    return (
        f'<g fill="none" stroke="{colour}" stroke-width="1.4"><title>{escape(_told(place))}</title>'
        f'<path d="{path}"/><path fill="{colour}" stroke="none" '
        f'd="M{x2} {y2}l6 -3.5v7z"/></g>'
    )


def _told(place: Placement) -> str:
    way = "travels through memory" if place.travels else "stays in the cache"
    return f"{place.buffer.name}: {place}; {way}"


def _text(
    x: float, y: float, text: str, colour: str, points: float, bold: bool = False, end: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="end"' if end else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{points}" fill="{colour}"{weight}{anchor}>'
        f"{escape(text)}</text>"
    )


def _cut(text: str, width: float) -> str:
    """What fits into so many pixels."""
    most = int(width / LETTER)
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
