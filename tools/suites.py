"""Both suites at once, a core each: how far each is while they run, then all that each says.

    python tools/suites.py relax=.venv/bin/python relay=.venv-relay/bin/python -m slow

What follows the Pythons is pytest's, but for `--covered`: coverage.py records which lines run. The
status is 1 if a suite's is not 0; both run to the end. On a terminal a bar for each; elsewhere a
line for every tenth.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

PERCENT = re.compile(r"\[ *(\d+)%\]\s*$")  # at the end of a line of pytest's
FILE = re.compile(r"^(\S+\.py)\b")
COVERED = "--covered"
STEP = 10  # percent between two lines, where there is no terminal


@dataclass
class Suite:
    """One pytest: what it said, and how far it is."""

    name: str
    command: list[str]
    lines: list[str] = field(default_factory=list)
    status: int = -1

    def run(self, tell: Callable[[Suite, int, str], None]) -> None:
        """Runs it to the end; `tell` hears of each percentage and of the file that it is in, and
        of the end.
        """
        process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        file = ""
        for line in process.stdout:
            self.lines.append(line)
            named, percent = FILE.match(line), PERCENT.search(line)
            file = named[1] if named else file
            if percent:
                tell(self, int(percent[1]), file)
        self.status = process.wait()
        passed = "passed" if self.status == 0 else f"not passed: status {self.status}"
        tell(self, 100, passed)


def main(args: list[str]) -> int:
    """0 if both suites passed."""
    pythons = [a.split("=", 1) for a in args if re.fullmatch(r"\w+=\S+", a)]
    rest = [a for a in args[len(pythons) :] if a != COVERED]
    pytest = ["-m", "coverage", "run", "-m", "pytest"] if COVERED in args else ["-m", "pytest"]
    suites = [Suite(name, [python, *pytest, *rest]) for name, python in pythons]
    console = Console()
    console.print(f"Running the tests with {' and '.join(s.name for s in suites)} at once.")
    show = _with_bars if console.is_terminal else _with_lines
    try:
        show(console, suites)
    except KeyboardInterrupt:  # the suites got it too
        return 130
    for suite in sorted(suites, key=lambda s: s.status != 0):  # what failed is read last
        console.rule(suite.name)
        sys.stdout.writelines(suite.lines)
        sys.stdout.flush()
    return int(any(suite.status for suite in suites))


def _run(suites: list[Suite], tell: Callable[[Suite, int, str], None]) -> None:
    threads = [threading.Thread(target=suite.run, args=(tell,), daemon=True) for suite in suites]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _with_bars(console: Console, suites: list[Suite]) -> None:
    columns = (
        TextColumn("{task.description:<6}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(), TextColumn("{task.fields[file]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        tasks = {s.name: progress.add_task(s.name, total=100, file="collecting") for s in suites}
        _run(suites, lambda s, p, file: progress.update(tasks[s.name], completed=p, file=file))


def _with_lines(console: Console, suites: list[Suite]) -> None:
    told = {suite.name: 0 for suite in suites}

    def tell(suite: Suite, percent: int, file: str) -> None:
        if percent >= told[suite.name] + STEP or suite.status >= 0:
            told[suite.name] = percent
            console.print(f"{suite.name:<6} {percent:>3}%  {file}", highlight=False)

    _run(suites, tell)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
