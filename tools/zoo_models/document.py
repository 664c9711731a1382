"""docs/models.md: the tables of all results that are there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .open_document import open_cell, open_lines
from .record import FAILED, RIGHT, Record
from .speed import speed_lines

BEGIN, END = "<!-- zoo -->", "<!-- end zoo -->"
HEAD = (
    "model",
    "imported",
    "built",
    "right",
    "error",
    "PyTorch's",
    "ops",
    "kernels",
    "left",
    "open",
)
MOST = 6  # kinds of ops left that a row names
DEAD = 1e-3  # another input changes the output by less: nothing is shown


def write_document(
    path: Path,
    records: Mapping[str, Record],
    keys: Sequence[str],
    absent: Mapping[str, str],
    opened: Mapping[str, Record],
) -> None:
    """Put the tables between the two marks, and leave the words around them as they are."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    text = markdown(records, keys, absent, opened)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def markdown(
    records: Mapping[str, Record],
    keys: Sequence[str],
    absent: Mapping[str, str],
    opened: Mapping[str, Record],
) -> str:
    """Totals, what failed and why, open sizes, what became kernels, and a table for each family."""
    found = [records[key] for key in keys if key in records]
    lines = _totals(found, keys)
    lines += [f"- {family}: left out here, {why}" for family, why in absent.items()]
    missing = [key for key in keys if key not in records]
    if missing:
        lines += ["", f"Not run yet ({len(missing)}): {', '.join(missing)}."]
    lines += ["", "## Refused and wrong", "", *_failures(found)]
    lines += ["", "## Open sizes", "", *open_lines(opened, keys)]
    failed = [opened[key] for key in keys if key in opened and opened[key].outcome != RIGHT]
    lines += ["", *_failures(failed)] if failed else []
    lines += ["", "## Kernels by composite", "", *_composites(found)]
    lines += ["", "## Ops left to TVM", "", *_left(found)]
    lines += ["", "## Speed", "", *speed_lines(found)]
    for family in dict.fromkeys(record.family for record in found):
        rows = [
            [*_row(record), open_cell(opened.get(record.key))]
            for record in found
            if record.family == family
        ]
        lines += ["", f"## {family}", "", *table(HEAD, rows)]
    return "\n".join(lines)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    told = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (head, *rows)]
    lines = [f"| {row} |" for row in told]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def _totals(found: Sequence[Record], keys: Sequence[str]) -> list[str]:
    if not found:
        return [f"0 of {len(keys)} models run."]
    rows = []
    for family in [*dict.fromkeys(r.family for r in found), "all"]:
        mine = [r for r in found if family in (r.family, "all")]
        total = sum(family == "all" or key.rpartition("/")[0] == family for key in keys)
        counts = [sum(r.reached(s) for r in mine) for s in ("import", "build")]
        counts.append(sum(r.outcome == RIGHT for r in mine))
        shares = [f"{count} ({100 * count / len(mine):.0f}%)" for count in counts]
        sizes = ", ".join(sorted({r.size for r in mine}))
        rows.append([family, f"{len(mine)} of {total}", sizes, *shares])
    head = ("family", "run", "pictures", "imported", "built", "right")
    dead = [r.key for r in found if r.live is not None and r.live < DEAD]
    lines = table(head, rows)
    if dead:
        lines += ["", f"Hardly change with their input, so right says little: {', '.join(dead)}."]
    return [*lines, ""]


def _failures(found: Sequence[Record]) -> list[str]:
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for record in found:
        if record.outcome != RIGHT:
            what = record.stage if record.outcome == FAILED else record.outcome
            group = (record.fault, what, record.op, record.reason)
            groups.setdefault(group, []).append(record.key)
    if not groups:
        return ["None."]
    head = ("whose fault", "where", "op", "reason", "models")
    rows = [
        [fault, what, f"`{op}`" if op else "", " ".join(reason.split()), ", ".join(names)]
        for (fault, what, op, reason), names in sorted(groups.items())
    ]
    return table(head, rows)


def _composites(found: Sequence[Record]) -> list[str]:
    matches: Counter[str] = Counter()
    models: Counter[str] = Counter()
    for record in found:
        matches.update(record.composites)
        models.update(record.composites.keys())
    rows = [[f"`{n}`", str(count), str(models[n])] for n, count in matches.most_common()]
    lines = table(("composite", "matches", "models"), rows)
    fell = Counter(text for record in found for text in record.fallbacks)
    if not fell:
        return [*lines, "", "No kernel fell back to the default schedule."]
    told = [[text, str(count)] for text, count in fell.most_common()]
    return [*lines, "", *table(("fell back to the default schedule", "models"), told)]


def _left(found: Sequence[Record]) -> list[str]:
    ops: Counter[str] = Counter()
    models: Counter[str] = Counter()
    for record in found:
        ops.update(record.left)
        models.update(record.left.keys())
    rows = [[f"`{n}`", str(count), str(models[n])] for n, count in ops.most_common(30)]
    return table(("op", "how many", "models"), rows)


def _row(record: Record) -> list[str]:
    left = Counter(record.left).most_common()
    more = f" and {len(left) - MOST} more kinds" if len(left) > MOST else ""
    told = ", ".join(f"{count} {kind}" for kind, count in left[:MOST]) + more
    reached = [_yes(record.reached(stage)) for stage in ("import", "build")]
    right = record.outcome if record.reached("run") else ""
    errors = [_number(record.error), _number(record.theirs)]
    counts = [str(n) if record.ops else "" for n in (record.ops, record.kernels)]
    return [record.name, *reached, right, *errors, *counts, told]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.1e}"
