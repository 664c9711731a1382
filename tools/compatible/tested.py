"""The tests in one environment, and what they found."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .environment import FOLDER, ROOT, Unavailable, clean, prepared, ran, versions
from .table import BY_NAME, Combination

SELECTED = {"quick": "quick", "all": "not slow"}
FUZZED = 5  # programs
NOT_TRIED = "not tried"


@dataclass
class Result:
    """One combination as it was found; `problem` where no test could run."""

    name: str
    tests: str
    system: str
    cpu: str
    when: str
    commit: str
    versions: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    fuzz: str = ""
    problem: str = ""

    @property
    def is_unavailable(self) -> bool:
        """Whether it could not be set up here."""
        return self.problem.startswith(NOT_TRIED)

    def as_json(self) -> dict[str, Any]:
        """What the file of the combination holds."""
        return asdict(self)


def tried(combination: Combination, tests: str, built: Path, limit: float) -> Result:
    """Set up the combination's environment and run the tests in it."""
    cpu = "Haswell (AVX-512 hidden)" if combination.hides_avx512 else cpu_name()
    today = time.strftime("%Y-%m-%d")
    result = Result(combination.name, tests, system_name(), cpu, today, commit())
    try:
        python = prepared(combination, built)
        result.versions = versions(python)
        surroundings = clean() | _hiding(combination)
        result.problem = import_error(python, surroundings)
        if not result.problem:
            _test(result, python, surroundings, limit)
            result.fuzz = _fuzzed(python, surroundings)
    except Unavailable as err:
        result.problem = f"{NOT_TRIED}: {err}"
    return result


def _hiding(combination: Combination) -> dict[str, str]:
    if not combination.hides_avx512:
        return {"OPENBLAS_NUM_THREADS": "1"}
    library = FOLDER / "without_avx512.so"
    ran([sys.executable, str(ROOT / "tools" / "without_avx512.py"), str(library)])
    hidden = {"SELFBYOC_CPU": "haswell", "LD_PRELOAD": str(library)}
    return {"OPENBLAS_NUM_THREADS": "1", **hidden}


def import_error(python: Path, surroundings: dict[str, str]) -> str:
    """The last line of what `import selfbyoc` says; empty when it works."""
    done = subprocess.run(
        [str(python), "-W", "error", "-c", "import selfbyoc"],
        env=surroundings, capture_output=True, text=True, cwd=FOLDER, check=False,
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return (lines[-1] if lines else f"ended with {done.returncode}") if done.returncode else ""


def _test(result: Result, python: Path, surroundings: dict[str, str], limit: float) -> None:
    report = FOLDER / f"{result.name}-{result.tests}.xml"
    report.unlink(missing_ok=True)
    # pytest's own script: `python -m pytest` would import this checkout and not what is installed.
    command = [str(python.parent / "pytest"), "-q", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors", "-m"]
    command += [SELECTED[result.tests], f"--junitxml={report}", *_files(result)]
    with report.with_suffix(".txt").open("w", encoding="utf-8") as log:
        status, stopped = _within(limit, command, surroundings, log)
    if not report.is_file():
        result.problem = f"pytest ended with {status}: see {report.with_suffix('.txt')}"
        return
    if stopped:
        result.tests += f", stopped after {limit / 60:.0f} minutes"
    result.counts, result.failed = counted(report.read_text(encoding="utf-8"), stopped)


def _within(limit: float, command: list[str], surroundings: dict[str, str], log: Any) -> Any:
    """The exit status of pytest, and whether it was stopped: it then tells what it found so far."""
    # A shell that starts this in the background lets it ignore SIGINT, and what it starts as well.
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command, env=surroundings, cwd=ROOT, stdout=log, stderr=log, preexec_fn=heeding
    ) as running:
        try:
            return running.wait(limit), False
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            return running.wait(), True


def _files(result: Result) -> list[str]:
    """The test files that are asked for: collecting all of them takes longer than a quick run."""
    if result.tests == "all":
        return []  # of pytest's own configuration
    lines = (ROOT / "tests" / "quick.txt").read_text(encoding="utf-8").splitlines()
    files = dict.fromkeys(n.partition("::")[0] for n in lines if n[:1] not in ("", "#"))
    other = "relax" if BY_NAME[result.name].is_relay else "relay"
    return [f"tests/{name}" for name in files if other not in name.split("/")]


def counted(text: str, stopped: bool = False) -> tuple[dict[str, int], dict[str, str]]:
    """The counts of a JUnit report, and the first line of what each failing test said; not of the
    test that a run was stopped in, which looks as if it had passed.
    """
    counts = dict.fromkeys(("passed", "failed", "errors", "skipped"), 0)
    failed = {}
    cases = list(ElementTree.fromstring(text).iter("testcase"))
    for case in cases[:-1] if stopped else cases:
        kinds = {child.tag: child for child in case}
        kind = next((k for k in ("failure", "error", "skipped") if k in kinds), "passed")
        counts[{"failure": "failed", "error": "errors"}.get(kind, kind)] += 1
        if kind in ("failure", "error"):
            name = f"{case.get('classname', '')}::{case.get('name')}"
            failed[name] = (kinds[kind].get("message") or "").partition("\n")[0][:200]
    return counts, failed


def _fuzzed(python: Path, surroundings: dict[str, str]) -> str:
    command = [str(python), "-m", "selfbyoc", "fuzz", "--count", str(FUZZED), "--seed", "0"]
    command += ["--output", str(FOLDER / "fuzz")]
    done = subprocess.run(
        command, env=surroundings, cwd=FOLDER, capture_output=True, text=True, check=False
    )
    return "nothing found" if done.returncode == 0 else f"ended with {done.returncode}"


def commit() -> str:
    """What is tested, such as "1ebb312"; with a + where the package or its tests differ from it."""
    git = ["git", "-C", str(ROOT)]
    try:
        changed = ran([*git, "status", "--porcelain", "--", "selfbyoc", "tests"])
        return ran([*git, "rev-parse", "--short", "HEAD"]).strip() + ("+" if changed else "")
    except (Unavailable, FileNotFoundError):
        return "unknown"


def cpu_name() -> str:
    """The processor as Linux names it, and whether it has AVX-512."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    wide = "AVX-512" if "avx512f" in text else "AVX2" if "avx2" in text else "SSE"
    return f"{name[1] if name else 'unknown'} ({wide})"


def system_name() -> str:
    """Such as "Debian GNU/Linux 12 (bookworm), glibc 2.36"."""
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.MULTILINE)
    libc = os.confstr("CS_GNU_LIBC_VERSION")
    return f"{name[1] if name else sys.platform}, {libc}"
