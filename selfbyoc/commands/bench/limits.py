"""What holds a workload back, by the machine's roofs."""

from __future__ import annotations

from .records import Report, Row


def least_times(row: Row, report: Report) -> dict[str, float]:
    """Milliseconds that a workload takes at least for each reason alone.

    Bytes come from the first level that holds all of them; nothing is asked of Winograd, which
    may stay below the time of its multiply-adds.
    """
    if not report.roofs:
        return {}
    roof = report.roofs[-1]
    level = level_of(row.bytes, report)
    return {
        "FMA": 1e-6 * row.flops / report.peak_of(row),
        level: 1e-6 * row.bytes / roof.bandwidth[level],
        "launch": 1e-3 * roof.launch,
    }


def level_of(size: int, report: Report) -> str:
    """The level of memory that a workload's data fit into."""
    for name, capacity in report.roofs[-1].sizes.items():
        if size <= capacity:
            return name
    return "memory"


def limit(row: Row, report: Report) -> str:
    """The reason that takes the longest, and its share of our time."""
    times = least_times(row, report)
    if not times or not row.ours.counts or not row.bytes:
        return "-"
    name = max(times, key=lambda n: times[n])
    return f"{name} {100 * times[name] / row.ours.milliseconds:.0f}%"
