"""The roofline plot as SVG: operations a byte against GFLOP/s, ours and the best peer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from ..page.drawing import FAINT, FONT, INK, PALETTE
from .records import Report, Row

WIDTH, HEIGHT = 860, 560
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 60
LINE = 15  # pixels of a line in the list below the plot
OURS, PEER = PALETTE[0], PALETTE[1]


class _Scale:
    """A logarithmic axis from whole powers of ten to whole powers of ten."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self._start + min(max(share, 0.0), 1.0) * (self._end - self._start)

    def ticks(self) -> list[float]:
        return [10.0**n for n in range(self.low, self.high + 1)]


def roofline(report: Report) -> str:
    """An <svg> of all rows of floats that ours took part in; it needs nothing else to be shown."""
    rows = [row for row in report.rows if row.ours.counts and row.flops and not row.floats]
    if not rows or not report.roofs:
        return _svg(["<text x='20' y='30'>nothing was measured</text>"], 60)
    x = _Scale([_intensity(r) for r in rows], LEFT, WIDTH - RIGHT)
    rates = [row.gflops(name) for row in rows for name in _shown(row)]
    y = _Scale([*rates, *(roof.gflops for roof in report.roofs)], HEIGHT - BOTTOM, TOP)
    parts = [*_axes(x, y), *_roofs(report, x, y)]
    for number, row in enumerate(rows, 1):
        parts += _points(row, number, x, y)
    parts += [line for n, row in enumerate(rows, 1) for line in _entry(row, n, len(rows))]
    return _svg(parts, HEIGHT + LINE * (_lines(len(rows)) + 1))


def _intensity(row: Row) -> float:
    return row.flops / row.bytes


def _shown(row: Row) -> list[str]:
    return ["selfbyoc", *([row.best_peer] if row.best_peer else [])]


def _svg(parts: Sequence[str], height: int) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" font-family="{FONT}" font-size="11" fill="{INK}">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _axes(x: _Scale, y: _Scale) -> Iterator[str]:
    bottom, grid = HEIGHT - BOTTOM, f'stroke="{FAINT}" stroke-width="0.4"'
    for tick in x.ticks():
        yield _line(x.at(tick), TOP, x.at(tick), bottom, grid)
        yield _text(x.at(tick), bottom + 16, f"{tick:g}", 'text-anchor="middle"')
    for tick in y.ticks():
        yield _line(LEFT, y.at(tick), WIDTH - RIGHT, y.at(tick), grid)
        yield _text(LEFT - 6, y.at(tick) + 4, f"{tick:g}", 'text-anchor="end"')
    middle = 'text-anchor="middle" font-size="12"'
    yield _text((LEFT + WIDTH - RIGHT) / 2, bottom + 36, "floating-point operations a byte", middle)
    yield _text(LEFT - 50, TOP - 18, "GFLOP/s", 'font-size="12"')


def _roofs(report: Report, x: _Scale, y: _Scale) -> Iterator[str]:
    """The peak of each number of threads, and the bandwidths of all threads below the highest."""
    style = f'stroke="{INK}" stroke-width="1.4"'
    for roof in report.roofs:
        yield _line(LEFT, y.at(roof.gflops), WIDTH - RIGHT, y.at(roof.gflops), style)
        threads = f"{roof.threads} thread{'s' * (roof.threads > 1)}"
        label = f"{threads}: {roof.gflops:.0f} GFLOP/s"
        yield _text(WIDTH - RIGHT, y.at(roof.gflops) - 4, label, 'text-anchor="end"')
    roof = report.roofs[-1]
    for level, rate in roof.bandwidth.items():
        low = max(10.0**x.low, 10.0**y.low / rate)
        high = min(roof.gflops / rate, 10.0**x.high)
        if low < high:
            dashed = f'{style} stroke-dasharray="5 3"'
            yield _line(x.at(low), y.at(low * rate), x.at(high), y.at(high * rate), dashed)
            label = f"{level} {rate:.0f} GB/s"
            yield _text(x.at(low) + 4, y.at(low * rate) - 6, label, f'fill="{INK}"')


def _points(row: Row, number: int, x: _Scale, y: _Scale) -> Iterator[str]:
    """Ours, the best peer as a ring, and a line between the two."""
    at, ours = x.at(_intensity(row)), y.at(row.gflops())
    title = f"<title>{escape(row.name)}</title>"
    if row.best_peer:
        peer = y.at(row.gflops(row.best_peer))
        yield _line(at, ours, at, peer, f'stroke="{FAINT}" stroke-width="1"')
        yield f'<circle cx="{at:.1f}" cy="{peer:.1f}" r="3.5" fill="white" stroke="{PEER}"/>'
    yield f'<circle cx="{at:.1f}" cy="{ours:.1f}" r="3.5" fill="{OURS}">{title}</circle>'
    yield _text(at + 5, ours + 3, str(number), f'font-size="9" fill="{OURS}"')


def _lines(count: int) -> int:
    return math.ceil(count / 2)


def _entry(row: Row, number: int, count: int) -> Iterator[str]:
    """A line of the list below: two columns."""
    column, line = divmod(number - 1, _lines(count))
    ratio = "" if row.ratio is None else f", {row.ratio:.2f} x {row.best_peer}"
    text = f"{number}  {row.name}: {row.gflops():.0f} GFLOP/s{ratio}"
    yield _text(LEFT + column * (WIDTH - LEFT) / 2, HEIGHT + LINE * (line + 0.5), text)
