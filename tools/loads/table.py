"""What a part says: one row a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was done, how often, what was found, what is allowed; and what is wrong."""

    what: str
    count: str
    found: str
    bound: str = ""
    problem: str = ""


def row_line(row: Row) -> str:
    """For a terminal."""
    verdict = f"  WRONG: {row.problem}" if row.problem else ""
    return f"{row.what:44} {row.count:>18}  {row.found}{verdict}"


def markdown(rows: Sequence[Row]) -> str:
    """For a document; a problem stands in bold."""
    lines = ["| | how many | found | allowed |", "|---|---|---|---|"]
    for row in rows:
        found = f"{row.found} **{row.problem}**" if row.problem else row.found
        lines.append(f"| {row.what} | {row.count} | {found} | {row.bound} |")
    return "\n".join(line.replace("\n", " ") for line in lines)
