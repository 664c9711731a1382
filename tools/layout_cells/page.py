"""The page: what all cells gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
HEAD = """\
# After TVM's layout passes

Every built-in composite (its first two cases, weights as constants), a ResNet block and a MobileNet
block, after every pass of TVM that moves layouts, on both generations: partitioned, built and
compared with NumPy. Made by `tools/layout_passes.py`; the cells, with what `explain` says of
layouts, are in `docs/reports/layout-passes-*.jsonl`. How it is done: [layouts](../layouts.md).

- **matched**: the same composites as before the pass, and right
- **taken**: other composites, no op more is left, and right: SimplifyInference, which comes before
  AlterOpLayout as in `relay.build`, makes a multiply and an add of a batch norm
- **less**: more ops are left to TVM than before the pass. Right, unless a note says otherwise
- **refused**: the pass itself raises, and there is no module
- **-**: the pass changes nothing
"""
_SHORT = {"unchanged": "-"}


def page(cells: dict[str, list[Row]]) -> str:
    """Of both generations' cells."""
    notes: list[str] = []
    parts = [HEAD]
    for generation, rows in cells.items():
        passes = list(dict.fromkeys(row["after"] for row in rows))
        parts += [f"\n## {generation.capitalize()}\n", *_counts(rows, passes), ""]
        parts += _table(rows, passes, notes)
    if notes:
        parts += ["\n## Notes\n", *(f"{n}. {text}" for n, text in enumerate(notes, 1))]
    return "\n".join(parts) + "\n"


def _counts(rows: Sequence[Row], passes: Sequence[str]) -> list[str]:
    """How many cells of a kind each pass has."""
    kinds = ("matched", "taken", "less", "refused", "unchanged")
    lines = [f"| after | {' | '.join(kinds)} | wrong |", f"|---|{'---:|' * (len(kinds) + 1)}"]
    for name in passes:
        own = [row for row in rows if row["after"] == name]
        found = Counter(row["verdict"] for row in own)
        wrong = sum(row.get("right") is False for row in own)
        numbers = " | ".join(str(found[kind]) for kind in kinds)
        lines.append(f"| {name} | {numbers} | {wrong} |")
    return lines


def _table(rows: Sequence[Row], passes: Sequence[str], notes: list[str]) -> list[str]:
    by_place = {(row["program"], row["after"]): row for row in rows}
    lines = [f"| program | {' | '.join(passes)} |", f"|---|{'---|' * len(passes)}"]
    for program in dict.fromkeys(row["program"] for row in rows):
        each = [_cell(by_place[program, name], notes) for name in passes]
        lines.append(f"| {program} | {' | '.join(each)} |")
    return lines


def _cell(row: Row, notes: list[str]) -> str:
    text: str = _SHORT.get(row["verdict"]) or row["verdict"]
    if row.get("right") is False:
        text += f", wrong; TVM alone: {row['tvm']}"
    note = _note(row)
    if not note:
        return text
    if note not in notes:
        notes.append(note)
    return f"{text} [{notes.index(note) + 1}]"


def _note(row: Row) -> str:
    """What a cell says beyond its word."""
    if row["verdict"] == "refused":
        return f"The pass raises: `{row['said']}`"
    if row["verdict"] == "less":
        left = ", ".join(f"{kind} {count}" for kind, count in row["left"].items())
        return f"Left to TVM: {left}"
    if row["verdict"] == "taken":
        return f"Taken by {', '.join(row['counts'])}"
    return ""
