"""`bench --lengths`: one library for all lengths, beside ours for each of them and beside peers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ..console import PlainTable
from .lengths import LEAST, LEAST_OF_SHORT, SHORT, is_even, least_of
from .means import compared, geometric_mean, ratios
from .records import STATIC, Row
from .tables import SHORT as SHORT_NAMES
from .tables import error_cell, names, ratio_cell, time_cells

OVER_STATIC = "static / ours"


def length_table(rows: Sequence[Row]) -> Table:
    """A row for each length; what we lose is red, the best peer is bold."""
    table = PlainTable(title="Lengths, built once, ms", title_justify="left", show_edge=False)
    table.add_column("workload", no_wrap=True)
    for name in names(rows):
        table.add_column(SHORT_NAMES.get(name, name), justify="right", no_wrap=True)
    for name in (OVER_STATIC, compared(rows), "peer", "error"):
        table.add_column(name, justify="right")
    for row in rows:
        cells = [*time_cells(row, names(rows)), ratio_cell(row.static_ratio, least_of(row))]
        cells += [ratio_cell(row.ratio), Text(row.best_peer or "-"), error_cell(row.ours)]
        table.add_row(*cells)
    return table


def length_lines(rows: Sequence[Row]) -> list[str]:
    """What the rows come to: geometric means, how many are as fast, how large the files are."""
    over_static = [row.static_ratio for row in rows if row.static_ratio is not None]
    even = f"at {sum(map(is_even, rows))} of {len(over_static)} at least {LEAST:.2f}"
    if any(row.length < SHORT for row in rows):
        even += f" (below {SHORT}: {LEAST_OF_SHORT:.2f})"
    over_peers = ratios(rows)
    faster = f"faster at {sum(r > 1 for r in over_peers)} of {len(over_peers)}"
    lines = _mean(OVER_STATIC, over_static, even) + _mean(compared(rows), over_peers, faster)
    if rows and not over_peers:
        lines.append("no peer took part")
    last = {row.key: row for row in rows}  # of each model
    return lines + [_sizes(row) for row in last.values()]


def _mean(name: str, of: Sequence[float], text: str) -> list[str]:
    return [f"{name} {geometric_mean(of):.2f} (geometric mean), {text}"] if of else []


def _sizes(row: Row) -> str:
    """Of the library built once, and of that for one length."""
    once, static = row.ours, row.results.get(STATIC)
    if static is None or not (once.file_bytes and static.file_bytes):
        return f"{row.name}: no sizes of files: one was not built, or there is no C++ compiler"
    return (
        f"library file: {_megabytes(once.file_bytes)} built once ({once.note}), "
        f"{_megabytes(static.file_bytes)} for {row.name} alone ({static.note})"
    )


def _megabytes(count: int) -> str:
    return f"{1e-6 * count:.2f} MB"
