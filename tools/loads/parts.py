"""The parts: which processes each starts, and how their figures are judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .table import Row

TOOLS = Path(__file__).parents[1]
LIMIT = 6 * 3600.0  # seconds of one process
A_BUILD, A_CALL = 8192, 8  # bytes that may stay, beside what stay with TVM alone
SHORT = 100  # threads that call once: TVM 0.17 keeps two of each
SLOWER = {"tune": 20, "verify": 5}  # a child takes seconds: so many times fewer


@dataclass(frozen=True)
class Asked:
    """How much of everything."""

    threads: int = 8
    rounds: int = 20
    builds: int = 1000
    calls: int = 100_000
    kills: int = 200
    seed: int = 0


def said(module: str, *arguments: object) -> Any:
    """The last line of a process, as data."""
    command = [sys.executable, "-m", f"loads.{module}", *map(str, arguments)]
    path = os.pathsep.join([str(TOOLS), *(p for p in sys.path if p)])
    env = {**os.environ, "PYTHONPATH": path, "SELFBYOC_CACHE": "off"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        text = f"{module} {arguments} ended with {done.returncode}: {done.stderr[-2000:]}"
        return {"problems": [text]}
    return json.loads(lines[-1])


def crowd(asked: Asked) -> Iterator[Row]:
    """Threads at once."""
    found = said("crowd", asked.threads, asked.rounds)
    wrong = found["problems"]
    count = f"{found.get('builds')} builds, {found.get('calls')} calls"
    yield Row(f"{asked.threads} threads at once", count, f"{len(wrong)} wrong", "0", _told(wrong))


def builds(asked: Asked) -> Iterator[Row]:
    """Memory and threads over builds, ours beside TVM's."""
    builds = asked.builds
    fewer = max(min(120, builds), builds // 4)
    yield from _pair("tvm", "builds", "builds of 30 models", builds, fewer, A_BUILD)
    yield from _pair("tvm-same", "same", "builds of one model", builds, fewer, A_BUILD)
    with tempfile.TemporaryDirectory() as folder:
        yield _soaked("builds of 30 models, cache", said("soak", "cached", builds, folder), A_BUILD)


def calls(asked: Asked) -> Iterator[Row]:
    """Memory and threads over calls, from this thread and from short ones."""
    yield from _pair("tvm-calls", "calls", "calls", asked.calls, asked.calls, A_CALL)
    yield from _pair("tvm-threads", "threads", "short threads that call", SHORT, SHORT, 1 << 20)


def _pair(theirs: str, mine: str, what: str, count: int, fewer: int, bound: int) -> Iterator[Row]:
    alone = said("soak", theirs, fewer)
    yield _soaked(f"{what}, TVM alone", alone)
    found = said("soak", mine, count)
    threads = alone.get("grown", 0) * count / fewer
    yield _soaked(what, found, bound + max(0, round(alone.get("bytes_each", 0))), round(threads))


def _soaked(what: str, found: Any, bound: int | None = None, threads: int = 0) -> Row:
    """Bytes by the fitted slope; threads at the end that there were not after the warm-up."""
    if "bytes_each" not in found:
        return Row(what, "", "", "", _told(found["problems"]))
    each, error, grown = found["bytes_each"], found["error"], found["grown"]
    mb = [f"{found[n] / 1e6:.1f}" for n in ("begin", "end")]
    text = f"{each:.0f} +- {error:.0f} bytes each; {mb[0]} to {mb[1]} MB; {grown:+d} threads"
    if bound is None:
        return Row(what, str(found["count"]), text)
    problem = "it grows" if each - 2 * error > bound or grown > threads + 1 else ""
    return Row(what, str(found["count"]), text, f"{bound} bytes each, {threads} threads", problem)


def kills(asked: Asked) -> Iterator[Row]:
    """SIGINT and SIGKILL in the midst of writing."""
    for job in ("build", "append", "report", "verify", "tune"):
        count = max(2, asked.kills // SLOWER.get(job, 1))
        with tempfile.TemporaryDirectory() as folder:
            found = said("kills", job, count, asked.seed, folder)
        left = {n: c for n, c in found.items() if n not in ("job", "count", "length", "problems")}
        text = ", ".join(f"{c} {n}" for n, c in left.items())
        bound = "all whole, none stays, nobody lives on"
        yield Row(f"stopped: {job}", str(count), text, bound, _told(found["problems"]))


def disks(asked: Asked) -> Iterator[Row]:
    """Folders that are of no use."""
    with tempfile.TemporaryDirectory() as folder:
        found = said("disks", Path(folder) / "disks")
    if not isinstance(found, list):
        yield Row("disks", "", "", "", _told(found["problems"]))
        return
    for disk in found:
        skipped = f"not tried: {disk['skipped']}" if "skipped" in disk else "nothing is said"
        text = "; ".join(disk.get("said", [])).replace(folder, "") or skipped
        yield Row(disk["disk"], "2 builds", text, "one warning or error", disk["problem"])


def forks(asked: Asked) -> Iterator[Row]:
    """Processes that come of one that has called."""
    found = said("forks")
    for way, problem in found.items():
        wrong = _told(problem) if isinstance(problem, list) else problem
        yield Row(way, "", "wrong" if wrong else "right", "right", wrong)


def _told(problems: list[str]) -> str:
    return "; ".join(problems)[:600].replace("\n", " ")


PARTS: dict[str, Callable[[Asked], Iterator[Row]]] = {
    "crowd": crowd, "builds": builds, "calls": calls, "kills": kills, "disks": disks,
    "forks": forks,
}  # fmt: skip
