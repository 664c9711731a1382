"""The table of mutations with what `explain` says of each: `python tools/mutations.py > FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "partition")]

HEAD = """\
# What explain says of a change

Programs that a composite takes, with one thing changed, and what the composite's record says then.
Each row is a test ([test_mutations.py](../../tests/partition/test_mutations.py)); every op of every
case of every built-in composite is changed in turn by
[test_mutations_everywhere.py](../../tests/partition/test_mutations_everywhere.py). Made on Relax by
`tools/mutations.py`.

| composite | changed | at | what explain says |
|---|---|---|---|
"""


def table() -> str:
    """The page, one row a mutation."""
    from test_mutations import ROWS, explained  # type: ignore[import-not-found]

    rows = []
    for row in ROWS:
        found, name = explained(row)
        (record,) = (r for r in found.of(name) if r.root == row.root)
        says = record.reason + (f" ({record.hint})" if record.hint else "")
        says = says.replace("|", "\\|").replace("*", "\\*")
        rows.append(f"| {name} | {row.name} | {row.root} | {record.status}: {says} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(table())
