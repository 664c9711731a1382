"""What docs/models.md says of models with an open size."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from .record import FAILED, OURS, RIGHT, WRONG, Record

REFUSED = "InputError"  # of a call: before any kernel ran


def beside_static(record: Record) -> float | None:
    """The static build's time by the open one's; more than one where the open one is faster."""
    times = record.times
    return times["static"] / times["open"] if {"static", "open"} <= set(times) else None


def open_cell(record: Record | None) -> str:
    """What a row of a model says."""
    if record is None:
        return ""
    size = record.facts.get("open", "")
    if not record.reached("export"):
        return "PyTorch does not export it" if record.stage == "export" else _told(record)
    speed = beside_static(record)
    told = [size, _told(record), _seconds(record) if record.reached("build") else ""]
    told.append(f"{speed:.2f} of static" if speed else "")
    return ", ".join(filter(None, told))


def _told(record: Record) -> str:
    if record.outcome != FAILED:
        return record.outcome
    return "refused" if is_refused(record) else f"fails: {record.stage}"


def _seconds(record: Record) -> str:
    """By the clock where it was quiet, else of both processors."""
    clock = record.seconds or record.processor
    return f"{clock.get('build', 0.0):.0f} s"


def is_refused(record: Record) -> bool:
    """Whether a call at one of the sizes was, with a reason."""
    return record.stage == "run" and record.reason.startswith(REFUSED)


def open_lines(opened: Mapping[str, Record], keys: Sequence[str]) -> list[str]:
    """The counts, in a sentence each."""
    found = [opened[key] for key in keys if key in opened]
    if not found:
        return ["No model was tried with an open size."]
    exported = [record for record in found if record.reached("export")]
    built = [record for record in exported if record.reached("build")]
    right = sum(record.outcome == RIGHT for record in built)
    wrong = sum(record.outcome == WRONG for record in built)
    refused = sum(map(is_refused, built))
    ours = sum(record.fault == OURS for record in found)
    lines = [
        f"{len(found)} models tried, {len(exported)} exported by PyTorch with the size open; of "
        f"these {_share(len(built), len(exported))} built, {_share(right, len(exported))} right at "
        f"every size, {wrong} wrong, {refused} refused in a call. {ours} of all that fails is ours."
    ]
    speeds = [speed for record in built if (speed := beside_static(record))]
    return [*lines, "", _speeds(speeds), *_without_kernel(built)]


def _without_kernel(built: Sequence[Record]) -> list[str]:
    """Which composites have no kernel of all sizes; TVM serves then, or the default schedule."""
    models = Counter(n for r in built for n in {text.partition(":")[0] for text in r.fallbacks})
    told = ", ".join(f"`{name}` ({count})" for name, count in models.most_common())
    return ["", f"Without a kernel of all sizes, and in how many models: {told or 'nothing'}."]


def _share(count: int, total: int) -> str:
    return f"{count} ({100 * count / max(total, 1):.0f}%)"


def _speeds(speeds: Sequence[float]) -> str:
    if not speeds:
        return "None was timed beside a static build yet."
    middle, least = statistics.median(speeds), min(speeds)
    return (
        f"{len(speeds)} timed beside a static build: median {middle:.2f} of its speed, least "
        f"{least:.2f}."
    )
