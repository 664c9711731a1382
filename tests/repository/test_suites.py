"""tools/suites.py: two suites at once, each as far as it says, and what each found at the end."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "suites.py"


def run(folder, **suites):
    """The tool over one file a suite; a Python that runs pytest there stands for an environment."""
    pythons = []
    for name, text in suites.items():
        there = folder / name
        there.mkdir()
        (there / "pytest.ini").write_text("[pytest]\n")
        for n in range(4):
            (there / f"test_{n}.py").write_text("def test_it(): pass\n")
        (there / "test_last.py").write_text(text)
        python = there / "python"
        python.write_text(f'#!/bin/sh\ncd {there}\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        pythons.append(f"{name}={python}")
    command = [sys.executable, TOOL, *pythons, "-p", "no:cacheprovider"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("broken", [False, True])
def test_both(tmp_path, broken):
    fails = "def test_it(): assert 1 == 2\n"
    done = run(
        tmp_path, one=fails if broken else "def test_it(): pass\n", two="def test_b(): pass\n"
    )
    assert done.returncode == int(broken)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    told = [line.split(maxsplit=2) for line in lines if line.startswith(("one ", "two "))]
    ends = {name: [(p, text) for n, p, text in told if n == name][-1] for name in ("one", "two")}
    assert ends["one"] == ("100%", "not passed: status 1" if broken else "passed")
    assert ends["two"] == ("100%", "passed")
    ends = [line for line in lines if " in " in line and "passed" in line]
    assert len(ends) == 2
    # What failed comes last.
    assert ("1 failed" in ends[-1]) == broken


def test_a_suite_that_ends_without_a_word(tmp_path):
    done = run(tmp_path, one="import os; os._exit(3)\n", two="def test_b(): pass\n")
    assert done.returncode == 1
    assert "5 passed" in done.stdout
    assert "one    100%  not passed: status 3" in done.stdout
