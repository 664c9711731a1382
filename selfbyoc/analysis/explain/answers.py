"""Why two ops are in one kernel, or why not."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import InputError
from ...language.declared import Declared
from ...partition.report import MATCHED, MISSED, PART, Record, Report


@dataclass(frozen=True)
class Answer:
    """About two ops of a model; `print` it."""

    ops: tuple[str, str]
    together: bool
    reason: str
    # The match that holds both; or the decisions that kept composites from holding both.
    records: tuple[Record, ...] = ()
    notes: tuple[str, ...] = ()  # what names of absorbed ops stand for

    def __str__(self) -> str:
        lines = [*self.notes, self.reason]
        for record in self.records if self.together else ():
            lines += [f"  {a} -> {b}: {kind} stays inside" for a, b, kind in record.edges]
            lines += [f"  {n} is {kind}, {_from(o)}" for n, kind, o in record.args]
        for record in () if self.together else _furthest(self.records):
            hint = f" ({record.hint})" if record.hint else ""
            lines.append(f"  {record.composite} at {record.root}: {record.reason}{hint}")
        return "\n".join(lines)


def _furthest(records: Sequence[Record]) -> list[Record]:
    """Of each composite the decision that came nearest to a match."""
    best: dict[str, Record] = {}
    for r in records:
        known = best.setdefault(r.composite, r)
        if (r.status != MISSED, r.fitted) > (known.status != MISSED, known.fitted):
            best[r.composite] = r
    return list(best.values())


def _from(origin: str) -> str:
    return {"input": "an input", "constant": "a constant"}.get(origin, f"computed by {origin}")


def resolve(report: Report, name: str) -> tuple[str, str]:
    """An op's name, also one that it had as it was written, or in the model that was imported (the
    last op made of that); and a note where the two differ.
    """
    now = {written: (kind, into) for written, kind, into in report.absorbed}
    names = [op for op, _, _ in report.ops]
    if name in names:
        if name in now and now[name][1] != name:
            return name, f"the model's {name}, as it was written, was read as {now[name][1]}"
        return name, ""
    if name in now:
        return now[name][1], f"{name} was read as {now[name][1]}, or as part of it"
    imported = {origin: op for op, origin in report.origins}
    if name in imported:
        return imported[name], f"{name} is {imported[name]} here"
    near = difflib.get_close_matches(str(name), [*names, *now, *imported], 5, 0.5)
    raise InputError(f"{name!r} is no op of this model; near it: {near or names[:5]}")


def answer(report: Report, op_a: str, op_b: str) -> Answer:
    """One kernel, by which composite and why; or two, or none, and what stopped the composites
    that could have held both.
    """
    (a, note_a), (b, note_b) = resolve(report, op_a), resolve(report, op_b)
    notes = tuple(note for note in (note_a, note_b) if note)
    holder = {op: r for r in report.matched for op in r.ops}
    in_a, in_b = holder.get(a), holder.get(b)
    if a == b:
        return Answer((a, b), in_a is not None, f"both are {a}{_at(in_a)}", _only(in_a), notes)
    if in_a is not None and in_a is in_b:
        reason = f"{a} and {b} are in one kernel{_at(in_a)}"
        reason += f": {in_a.reason}" if in_a.reason else ""
        return Answer((a, b), True, reason, (in_a,), notes)
    places = [
        f"{op} is left to TVM" if record is None else f"{op} is{_at(record)}"
        for op, record in ((a, in_a), (b, in_b))
    ]
    stopped, why = _stopped(report, a, b)
    return Answer((a, b), False, f"{' and '.join(places)}; {why}", stopped, notes)


def _only(record: Record | None) -> tuple[Record, ...]:
    return () if record is None else (record,)


def _at(record: Record | None) -> str:
    return "" if record is None else f" in {record.composite} at {record.root}"


def _stopped(report: Report, a: str, b: str) -> tuple[tuple[Record, ...], str]:
    """The decisions of composites that have both kinds of op, where both are within reach."""
    kinds = {name: kind for name, kind, _ in report.ops}
    ahead = _steps_ahead(report, a), _steps_ahead(report, b)
    first, second = (b, a) if a in ahead[1] else (a, b)
    in_order = b in ahead[0] or a in ahead[1]
    both = [c for c in report.composites if c.can_hold(kinds[first], kinds[second], in_order)]
    if not both:
        how = "before" if in_order else "and"
        return (), f"no composite has {kinds[first]} {how} {kinds[second]}"
    found = tuple(
        r for c in both for r in report.records if r.composite == c.name and _reaches(c, r, *ahead)
    )
    names = ", ".join(c.name for c in both)
    if not found:
        return (), f"they are too far apart for {names}"
    return found, "what could have held both did not:"


def _reaches(composite: Declared, record: Record, *ahead: dict[str, int]) -> bool:
    """Whether the root comes after both ops, within the length of the pattern."""
    near = composite.grows or all(
        steps.get(record.root, composite.depth) < composite.depth for steps in ahead
    )
    return near and record.status not in (MATCHED, PART)


def _steps_ahead(report: Report, start: str) -> dict[str, int]:
    """Op -> the fewest edges from `start` to it."""
    readers: dict[str, list[str]] = {}
    for producer, consumer in report.edges:
        readers.setdefault(producer, []).append(consumer)
    steps, ring = {start: 0}, [start]
    while ring:
        ring = [reader for op in ring for reader in readers.get(op, ()) if reader not in steps]
        ring = list(dict.fromkeys(ring))
        steps.update(dict.fromkeys(ring, max(steps.values()) + 1))
    return steps
