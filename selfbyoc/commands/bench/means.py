"""Many rows in a few numbers: means, and which are the worst."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .records import OWN_BUILD, Row


def compared(rows: Sequence[Row]) -> str:
    """Whose time the ratios of these rows are of."""
    found = {row.best_peer for row in rows if row.best_peer}
    return "TVM default / ours" if found == {OWN_BUILD} else "best peer / ours"


def geometric_mean(values: Iterable[float]) -> float:
    """NaN for nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def ratios(rows: Sequence[Row]) -> list[float]:
    """Those of the rows that have one."""
    return [row.ratio for row in rows if row.ratio is not None]


def worst(rows: Sequence[Row], count: int = 5) -> list[Row]:
    """The rows with the lowest ratios, the lowest first."""
    found = [row for row in rows if row.ratio is not None]
    return sorted(found, key=lambda row: row.ratio or 0.0)[:count]
