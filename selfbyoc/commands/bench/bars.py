"""The figure of README.md and docs/performance.md: the measured tables as bars, an SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import exp, log

from ..page.drawing import FAINT, FONT, INK, PALETTE
from .tables import TITLES

WIDTH, LEFT, LINE, BAR = 760, 236, 22, 14
AXIS = 3.2  # the ratio at the right end of the axis
UNIT = (WIDTH - LEFT - 216) / AXIS  # pixels of a ratio of one; labels take the rest
SHOWN = (TITLES["named"], TITLES["models"])
BUILDS = ("stacked", "TVM default")  # of TVM's, with nothing of ours: no peers
PEERS = {"ORT": "ONNX Runtime", "torch": "PyTorch"}  # as the tables' heads abbreviate
# GitHub and browsers show the file as an image: it follows the reader's scheme by itself.
DARK = "@media(prefers-color-scheme:dark){text{fill:#e4e7eb}}"
STYLE = f"text{{fill:{INK}}}.bar{{fill:{PALETTE[0]}}}{DARK}"


@dataclass(frozen=True)
class Bar:
    """A row of a table: how many times our time the best peer takes."""

    name: str
    milliseconds: str
    ratio: float
    peer: str
    is_slower: bool
    peers: int  # that took part


def measured(text: str) -> dict[str, list[Bar]]:
    """The tables of a document that commands/bench/performance.py wrote -> {title: rows}."""
    tables = re.findall(r"^\*\*([^*\n]+)\*\*\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    return {title: list(_bars(table.splitlines())) for title, table in tables}


def _bars(lines: Sequence[str]) -> Iterator[Bar]:
    head, _, *rows = map(_cells, lines)
    timed = head[head.index("ours, ms") + 1 : head.index("best peer / ours")]
    peers = [name for name in timed if name not in BUILDS]
    for cells in rows:
        row = dict(zip(head, cells, strict=True))
        best = next(name for name, cell in row.items() if cell.startswith("**"))
        ours, ratio = row["ours, ms"], float(row["best peer / ours"])
        is_slower = float(ours) > float(row[best].strip("*"))
        yield Bar(row["workload"], ours, ratio, PEERS.get(best, best), is_slower, len(peers))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def mean(bars: Sequence[Bar]) -> float:
    """The geometric mean of the ratios."""
    return exp(sum(log(bar.ratio) for bar in bars) / len(bars))


def verdict(tables: Mapping[str, Sequence[Bar]]) -> str:
    """A line for each table: how many times as fast as the best peer, and where slower."""
    lines = ["| | rows | times as fast as the best peer | least | slower in |"]
    lines.append("|---|---:|---:|---:|---:|")
    for title, bars in tables.items():
        least, slower = min(bar.ratio for bar in bars), sum(bar.is_slower for bar in bars)
        cells = [title.lower(), len(bars), f"**{mean(bars):.2f}**", f"{least:.2f}", slower]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def figure(tables: Mapping[str, Sequence[Bar]]) -> str:
    """An <svg> of the fused workloads and the whole models; it needs nothing else to be shown."""
    parts, y = [], 24
    for title in SHOWN:
        bars = tables[title]
        heading = f"{title}: {mean(bars):.2f} times as fast as the best of {bars[0].peers} peers"
        parts.append(_text(10, y, heading, 'font-weight="bold"'))
        for bar in bars:
            y += LINE
            parts += _row(bar, y)
        y += 2 * LINE
    even = LEFT + UNIT
    line = f'y1="34" y2="{y - 2 * LINE + 8}" stroke="{FAINT}" stroke-dasharray="3 3"'
    parts.append(f'<line x1="{even:.1f}" x2="{even:.1f}" {line}/>')
    parts.append(_text(even, y - LINE, "1: as fast as the best peer", 'text-anchor="middle"'))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y - 10}" width="{WIDTH}" '
        f'font-family="{FONT}" font-size="12">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>\n"])


def _row(bar: Bar, y: float) -> Iterator[str]:
    length = UNIT * min(bar.ratio, AXIS)
    yield _text(LEFT - 8, y, bar.name, 'text-anchor="end"')
    yield f'<rect class="bar" x="{LEFT}" y="{y - 11}" width="{length:.1f}" height="{BAR}"/>'
    label = f"{bar.ratio:.2f} x {bar.peer} (ours {bar.milliseconds} ms)"
    yield _text(LEFT + length + 6, y, label)


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}" {style}>{escape(text)}</text>'
