"""The document: what all cells gave, on both generations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

HEAD = """\
# Executors

What runs a partitioned module, and with what result: every program below by every executor at every
opt_level, compared with NumPy. `make executors` builds and runs all of it, with both TVMs, in
processes that may crash, and writes this page (`tools/executors.py`) of its data, in which messages
are whole (`docs/reports/executors-*.json`). `make matrix` runs every built-in composite with the
same executors, and after other passes before partitioning.

**right**: the results are NumPy's, within the tolerance of all tests; partitioning took exactly
the composites in the column "taken", so that nothing but their kernels computes their ops; and the
hook compiled each of them for this build. A number in brackets is a note: the message, and what TVM
alone does with the same module (of a call, only if it does something else). A cell without a level
holds for `opt_level` 0, 1, 2 and 3 with this machine's target, and for 3 with a target that names
no CPU (`llvm`).

- Relax's virtual machine takes everything, as bytecode and with `exec_mode="compiled"`.
- `selfbyoc.build` uses the graph executor on Relay. Only the Relay VM runs a batch whose size is
  known at the call: `build` raises an InputError that says so, `relay.build` refuses it in TVM's
  words, before it asks any external compiler.
- A library of the AOT executor must be exported and loaded. TVM 0.17's code calls external
  functions, of any external compiler, by symbols that only a linker resolves: running it in memory
  ends the process.
- The Relay VM takes no module at `opt_level=0`, partitioned or not.
- The Relay VM checks no argument. Our kernels do, and so do TVM's: another shape or dtype is an
  error. The other executors check by themselves.
"""


@dataclass
class Notes:
    """Numbered notes; equal ones have one number."""

    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> str:
        """`[2]`."""
        if text not in self.texts:
            self.texts.append(text)
        return f"[{self.texts.index(text) + 1}]"

    def lines(self) -> list[str]:
        """As Markdown."""
        return [f"{n}. {text}" for n, text in enumerate(self.texts, 1)]


Row = dict[str, Any]
LONGEST = 130  # letters of a message


def page(reports: Sequence[dict[str, Any]]) -> str:
    """The whole document."""
    return HEAD + "".join("\n" + _section(report) for report in reports)


def _section(report: dict[str, Any]) -> str:
    rows, executors = report["cells"], report["executors"]
    right = sum(row["kind"] == "right" for row in rows)
    lines = [
        f"## {report['title']}",
        "",
        f"{report['versions']}. {report['machine']}. {len(rows)} cells: {right} right, "
        f"{len(rows) - right} not, for the reasons in the notes.",
    ]
    notes = Notes()
    plain = [row for row in rows if not row.get("variant") and not row.get("call")]
    lines += ["", "### Programs", "", *_programs(plain, executors, report["taken"], notes)]
    lines += ["", "### Called from memory, from a file, by another process", ""]
    lines += [f"The program {report['exported']!r}.", ""]
    lines += _table(plain, executors, "way", report["exported"], notes)
    lines += ["", "### Other ways to build", "", f"The program {report['built']!r}.", ""]
    variants = [row for row in rows if row.get("variant")]
    lines += _not_right(variants, "variant", "build", executors, notes)
    if calls := [row for row in rows if row.get("call")]:
        callers = list(dict.fromkeys(row["executor"] for row in calls))
        lines += ["", "### Calls", "", *_not_right(calls, "call", "call", callers, notes)]
    lines += ["", *(notes.lines() or ["No notes."])]
    return "\n".join(lines) + "\n"


def _header(first: Sequence[str], executors: Iterable[str]) -> list[str]:
    names = [*first, *executors]
    return ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]


def _programs(
    rows: list[Row], executors: list[str], taken: dict[str, str], notes: Notes
) -> list[str]:
    usual = [row for row in rows if row["way"] == _usual(rows, row)]
    everywhere = {executor: _at_every(usual, executor, notes) for executor in executors}
    lines = [
        f"`{executor}` at {name}, whatever the program: {said}. The column is of the other levels."
        for executor, found in everywhere.items()
        for name, said in found.items()
    ]
    lines = [*lines, ""] if lines else []
    lines += _header(("program", "taken"), executors)
    for program in taken:
        cells = []
        for executor in executors:
            mine = [r for r in usual if r["program"] == program and r["executor"] == executor]
            others = [r for r in mine if _name(r) not in everywhere[executor]]
            cells.append(_levels(others, notes))
        lines.append(f"| {program} | {taken[program]} | " + " | ".join(cells) + " |")
    return lines


def _usual(rows: list[Row], row: Row) -> str:
    """The way in which a program is called that is run in one way alone."""
    key = (row["program"], row["executor"])
    return str(next(r["way"] for r in rows if (r["program"], r["executor"]) == key))


def _name(row: Row) -> str:
    """Of a level, or of a target."""
    return f"opt_level {row['level']}" if row["target"] == "host" else str(row["target"])


def _at_every(rows: list[Row], executor: str, notes: Notes) -> dict[str, str]:
    """Levels at which an executor ends every program in the same way, which is not right."""
    at: dict[str, list[Row]] = {}
    for row in rows:
        if row["executor"] == executor:
            at.setdefault(_name(row), []).append(row)
    return {
        name: _said(found[0], notes)
        for name, found in at.items()
        if found[0]["kind"] != "right" and len({(r["kind"], _note(r)) for r in found}) == 1
    }


def _levels(rows: list[Row], notes: Notes) -> str:
    """The outcomes of one program by one executor: levels that agree are put together."""
    said: dict[str, list[str]] = {}
    for row in rows:
        said.setdefault(_said(row, notes), []).append(_name(row).removeprefix("opt_level "))
    if len(said) == 1:
        return next(iter(said))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in said.items())


def _said(row: Row, notes: Notes) -> str:
    if row["kind"] == "right":
        return "right"
    return f"{row['kind']} {notes.number(_note(row))}"


def _note(row: Row) -> str:
    alone = row.get("alone", "")
    if row["kind"] == "wrong" and row.get("why"):  # other numbers in each cell
        return f"TVM alone: {alone}. {row['why']}."
    if not alone:  # a call that TVM does not have
        return f"`{_plain(row.get('says', ''))}`"
    theirs = "TVM alone too." if alone == row["kind"] else f"TVM alone: {alone}."
    if row.get("call") and alone == row["kind"]:
        theirs = ""
    why = f"{row['why']}." if row.get("why") else ""
    return " ".join(part for part in (f"`{_plain(row.get('says', ''))}`", theirs, why) if part)


def _plain(text: str) -> str:
    """Without what differs from run to run or would end the code span: names made of hashes; and
    without what says of which function it is.
    """
    text = re.sub(r"0x[0-9a-f]+", "0x...", text.replace("`", "'"))
    text = re.sub(r"m[0-9a-f]{12}", "m...", text)
    text = re.sub(r"ErrorContext\(.*?\)\)\s+|Check failed: \(.*?\) is false: ", "", text)
    return text if len(text) < LONGEST else text[: LONGEST - 3] + "..."


def _table(
    rows: list[Row], executors: list[str], key: str, program: str, notes: Notes
) -> list[str]:
    rows = [
        r for r in rows if r["program"] == program and r["level"] == 3 and r["target"] == "host"
    ]
    lines = _header((key,), executors)
    for name in dict.fromkeys(r[key] for r in rows):
        mine = {r["executor"]: _said(r, notes) for r in rows if r[key] == name}
        lines.append(f"| {name} | " + " | ".join(mine.get(e, "") for e in executors) + " |")
    return lines


def _not_right(
    rows: list[Row], key: str, head: str, executors: Sequence[str], notes: Notes
) -> list[str]:
    """What is right by all executors that have it, in a line; a table of what is not."""
    names = dict.fromkeys(row[key] for row in rows)
    others = {row[key] for row in rows if row["kind"] != "right"}
    right = ", ".join(f"`{name}`" for name in names if name not in others)
    lines = [f"Right by all that have it: {right}.", "", *_header((head,), executors)]
    for name in (name for name in names if name in others):
        mine = {r["executor"]: _said(r, notes) for r in rows if r[key] == name}
        lines.append(f"| {name} | " + " | ".join(mine.get(e, "") for e in executors) + " |")
    return lines
