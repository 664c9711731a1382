"""What was timed: seconds to build, and ours against the best peer."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from .record import Record

OURS = "selfbyoc"
LONG = 1.0  # seconds for each 10 ops
STAGES = ("partition", "build", "run")  # TVM makes machine code in the first call
HEAD = ("model", "to the first result", "in a second", "ours", "best peer", "which", "speed")


def speed_of(record: Record) -> float | None:
    """The best peer's time by ours; more than one where ours is faster."""
    peers = [time for name, time in record.times.items() if name != OURS]
    ours = record.times.get(OURS)
    return min(peers) / ours if peers and ours else None


def speed_lines(found: Sequence[Record]) -> list[str]:
    """The table of what was timed, slowest first; a sentence where nothing was."""
    timed = [record for record in found if record.times]
    if not timed:
        told = "Nothing was timed: these runs were made with `--no-time`, on a busy machine."
        return [told, *work_lines(found)]
    rows = [(speed_of(record), record) for record in timed]
    rows.sort(key=lambda row: row[0] or math.inf)  # without any peer last
    speeds = [speed for speed, _ in rows if speed]
    lines = [_summary(speeds, len(found))] if speeds else []
    where = Counter(record.timed.rpartition(", ")[0] for record in timed)
    machines = (f"{count} on {cpu or 'a CPU without a name'}" for cpu, count in where.items())
    lines += ["", "; ".join(machines) + "."]
    cells = [" | ".join(_cells(record, speed)) for speed, record in rows]
    lines += ["", "| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += [f"| {row} |" for row in cells]
    absent = Counter(f"{name}: {why}" for r in timed for name, why in r.skipped.items())
    reasons = [f"- {text} ({count})" for text, count in sorted(absent.items())]
    lines += ["", *reasons] if reasons else []
    return [*lines, *work_lines(found)]


def work_lines(found: Sequence[Record]) -> list[str]:
    """Processor seconds to the first result, which a busy machine does not change."""
    rows = [
        (10 * sum(r.processor.get(stage, 0.0) for stage in STAGES) / r.ops, r.key)
        for r in found
        if r.ops and "run" in r.processor
    ]
    if not rows:
        return []
    middle = statistics.median(work for work, _ in rows)
    slow = [f"{key} {work:.1f}" for work, key in sorted(rows, reverse=True) if work > LONG]
    return [
        "",
        "Seconds of one core to partition, build and call once, for each 10 ops: "
        f"{middle:.2f} in the middle of {len(rows)} models; more than {LONG:g}: "
        f"{', '.join(slow) or 'none'}.",
    ]


def _summary(speeds: Sequence[float], total: int) -> str:
    mean = math.exp(sum(map(math.log, speeds)) / len(speeds))
    faster = sum(speed >= 1 for speed in speeds)
    return (
        f"{len(speeds)} of {total} timed: {faster} faster than the best peer, geometric mean "
        f"{mean:.2f}, least {min(speeds):.2f}."
    )


def _cells(record: Record, speed: float | None) -> list[str]:
    seconds = sum(record.seconds.get(stage, 0.0) for stage in STAGES)
    peers = {name: time for name, time in record.times.items() if name != OURS}
    best = min(peers, key=peers.__getitem__) if peers else ""
    rate = f"{record.ops / seconds:.0f} ops" if seconds else ""
    times = [f"{t:.3g} ms" if t else "" for t in (record.times.get(OURS), peers.get(best))]
    told = f"{speed:.2f}" if speed else ""
    return [record.key, f"{seconds:.1f} s" if seconds else "", rate, *times, best, told]
