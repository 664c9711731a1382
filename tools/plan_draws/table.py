"""What a file of chunks says, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .asked import families
from .chunks import key_of

Line = Mapping[str, Any]


def tables(lines: Sequence[Line]) -> str:
    """A row for each family, a row for each CPU, and the different faults."""
    return "\n\n".join([by_family(lines), by_machine(lines), *_faults(lines)])


def by_family(lines: Sequence[Line]) -> str:
    """Draws, plans, and how fast they were made."""
    rows = ["| plan | composites | programs | plans | a second | slowest case, ms | faults |"]
    rows += ["|---|---|---|---|---|---|---|"]
    for family, composites in families().items():
        own = [line for line in lines if line["family"] == family]
        plans, seconds = _sum(own, "plans"), _sum(own, "seconds")
        names = ", ".join(f"`{c.name}`" for c in composites)
        rate = f"{plans / seconds:,.0f}" if seconds else ""
        slowest = f"{1e3 * max((line['slowest'] for line in own), default=0):,.0f}"
        kinds = len({key_of(f["fault"]) for line in own for f in line["findings"]})
        draws = f"{_sum(own, 'draws'):,}"
        rows.append(f"| {family} | {names} | {draws} | {plans:,} | {rate} | {slowest} | {kinds} |")
    return "\n".join(rows)


def by_machine(lines: Sequence[Line]) -> str:
    """Plans by CPU."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line["machines"])
    rows = ["| CPU | plans |", "|---|---|"]
    rows += [f"| {cpu} | {plans:,} |" for cpu, plans in counts.most_common()]
    return "\n".join([*rows, f"| all | {sum(counts.values()):,} |"])


def _faults(lines: Iterable[Line]) -> list[str]:
    """The first of each kind, and how many chunks have it."""
    seen: Counter[str] = Counter()
    first: dict[str, str] = {}
    for line in lines:
        for finding in line["findings"]:
            key = f"{line['family']}: {key_of(finding['fault'])}"
            seen[key] += 1
            first.setdefault(key, f"{line['family']}: {finding['fault']}")
    rows = [f"- {count} x {first[key]}" for key, count in seen.most_common()]
    return ["\n".join(rows)] if rows else []


def _sum(lines: Iterable[Line], name: str) -> Any:
    return sum(line[name] for line in lines)
