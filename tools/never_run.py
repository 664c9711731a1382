"""Functions that no test runs: of what `make coverage` recorded with both TVMs, by room.

    python tools/never_run.py build/coverage

The folder holds coverage.py's data, a file a process; what was added by an earlier call stays.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, order=True)
class Function:
    """A function of a file, and whether a line of it ran."""

    path: str
    name: str
    ran: bool

    @property
    def room(self) -> str:
        """The folder of the package, `tools`, or `hall` for what lies beside the folders."""
        package, *rest = Path(self.path).parts
        return package if package == "tools" else rest[0] if len(rest) > 1 else "hall"


def functions(data: dict[str, Any]) -> list[Function]:
    """Of coverage.py's JSON; what has no lines of its own, as a protocol's, is left out."""
    return sorted(
        Function(path, name, bool(lines["executed_lines"]))
        for path, file in data["files"].items()
        for name, lines in file["functions"].items()
        if name and lines["executed_lines"] + lines["missing_lines"]
    )


def table(found: list[Function]) -> Table:
    """Functions of each room, and those that nothing ran."""
    made = Table("room", "functions", "never run")
    every = Counter(f.room for f in found)
    idle = Counter(f.room for f in found if not f.ran)
    for room in sorted(every):
        made.add_row(room, f"{every[room]:,}", f"{idle[room]:,}")
    made.add_row("all", f"{len(found):,}", f"{idle.total():,}")
    return made


def main(folder: Path) -> None:
    """Combines the data, and prints what never ran and the table."""
    coverage, data = [sys.executable, "-m", "coverage"], folder / "all.json"
    if any(folder.glob("data.*")):
        subprocess.run([*coverage, "combine", "--quiet", "--append"], check=True)
    subprocess.run([*coverage, "json", "--quiet", "-o", str(data)], check=True)
    found = functions(json.loads(data.read_text(encoding="utf-8")))
    for function in found:
        if not function.ran:
            print(f"{function.path}: {function.name}")
    Console().print(table(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
