"""Processes that are stopped at any moment: what they write is whole afterwards.

    python -m loads.kills JOB COUNT SEED FOLDER

A process that has loaded TVM, and has called nothing, forks one child after the other; each does a
piece of work and is sent SIGINT or SIGKILL in the midst of it. One line of JSON at the end.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selfbyoc import tune
from selfbyoc.__main__ import main as command
from selfbyoc.codegen.cache.store import Store
from selfbyoc.codegen.records import record as records
from selfbyoc.codegen.records.record import Place, Record
from selfbyoc.commands.bench.records import Report, Result, Row, read_report, write_report
from selfbyoc.commands.bench.roof import Roof

from .models import model, ours

INTERRUPTED, WRONG = 130, 1
PATIENCE = 600.0  # seconds after which a child hangs
ORPHANS = 30.0  # seconds in which the processes that a killed one started end, too
CHECKED = 20  # stopped children between two looks at what they left
Job = Callable[[Path, int], None]


def build_job(folder: Path, number: int) -> None:
    """Two builds with the cache, each called and checked: one new, one of those before."""
    for n in (number, number // 2):
        found = model(n)
        arrays = found.arrays(n)
        text = found.wrong(ours(found, cache=str(folder / "cache"))(*arrays), arrays)
        assert text is None, text


def append_job(folder: Path, number: int) -> None:
    """Records, one after the other."""
    for n in range(60):
        records.append(folder, record(number, n))


def record(number: int, n: int) -> Record:
    """A record of 20 KB: larger than what the system writes at once."""
    place = Place("relax", {"kind": "llvm"}, 1)
    told = {"date": "x" * 20_000}
    return Record(f"{number}-{n}", "dense", "", place, "measured", made_by=told)


def report_job(folder: Path, number: int) -> None:
    """Reports, one over the other."""
    for n in range(60):
        write_report(folder / "report.json", report(number * 1000 + n))


def report(number: int) -> Report:
    """A report of some size."""
    roof = Roof(1, 50.0, {"memory": 10.0}, 2.0, {})
    rows = tuple(Row(f"{i}", "named", 1, 1, {"torch": Result(1.0)}) for i in range(50))
    method = dict.fromkeys(("windows", "turns", "seconds", "builds"), 1.0)
    return Report({"number": str(number)}, {}, "relax", 1, method, (roof,), rows)


def tune_job(folder: Path, number: int) -> None:
    """A search in a small space."""
    tune(model(3 * number).mod, "llvm", trials=6, work_dir=folder, cost_model="none")


def verify_job(folder: Path, number: int) -> None:
    """The command, which writes a report."""
    with open(os.devnull, "w", encoding="utf-8") as null, contextlib.redirect_stdout(null):
        done = command(["verify", str(folder / "m.onnx"), "--json", str(folder / "report.json")])
    assert done == 0


JOBS: dict[str, Job] = {
    "build": build_job, "append": append_job, "report": report_job, "tune": tune_job,
    "verify": verify_job,
}  # fmt: skip


def child(work: Callable[[], None], log: Path) -> int:
    """A process of a group of its own; it exits with 0, 130, or 1 and what was raised."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the child expects it
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return pid
    os.setsid()
    status = WRONG
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        work()
        status = 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BaseException:  # the finding, whatever it is
        log.write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os._exit(status)


def ended(pid: int, patience: float = PATIENCE) -> int | None:
    """How a child ended; None where it hangs, and is killed for it."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def orphans(session: int) -> bool:
    """Whether processes of a session live on, after some time to end."""
    deadline = time.monotonic() + ORPHANS
    while any(_session(p) == session for p in Path("/proc").iterdir() if p.name.isdigit()):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.05)
    return False


def _session(process: Path) -> int:
    try:
        fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return -1
    return int(fields[3]) if fields[0] != "Z" else -1


class Whole:
    """What is found in a folder after children were stopped there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def look(self) -> None:
        """Every file is whole or refused in one warning, and nothing half written stays."""
        store, place = Store(self.folder / "cache"), self.folder / "cache"
        kept = list(place.glob("*.kernel")) if place.is_dir() else []
        self.note("cache entries", len(kept), len(store.entries()))
        if (self.folder / records.FILE).exists():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found = records.read(self.folder)
            self.counts["records"] = len(found)
            lines = (self.folder / records.FILE).read_bytes().splitlines()
            self.counts["records cut off, each in one warning"] = len(told)
            if len(found) + len(told) != len([line for line in lines if line.strip()]):
                self.problems.append("a line of the records is neither read nor warned of")
        if (self.folder / "report.json").exists() and not (self.folder / "m.onnx").exists():
            read_report(self.folder / "report.json")
        elif (self.folder / "report.json").exists():
            json.loads((self.folder / "report.json").read_text(encoding="utf-8"))

    def note(self, name: str, there: int, whole: int) -> None:
        """How many there are, and that all are whole."""
        self.counts[name] = there
        if there != whole:
            self.problems.append(f"{there - whole} of {there} {name} are not whole")

    def sweep(self, again: Callable[[], None]) -> None:
        """What was left half written goes once it is old, with the next one that is written."""
        found = self.left()
        self.counts["half-written files"] = len(found)
        for part in found:
            os.utime(part, (0, 0))
        again()
        self.counts["of which stay"] = len(self.left())
        if self.left():
            self.problems.append(f"{self.left()[:3]} stay")

    def left(self) -> list[Path]:
        """What ends as a file does that is being written."""
        return [p for p in self.folder.rglob("*") if ".part" in p.name]


def stopped(job: str, count: int, seed: int, folder: Path) -> dict[str, Any]:
    """Stop so many children, and look at what they left."""
    rng, found, log = random.Random(seed), Whole(folder), folder / "log"
    folder.mkdir(parents=True, exist_ok=True)
    if job == "verify":
        _save(folder / "m.onnx")
    length = _length(job, folder, log)
    for number in range(1, count + 1):
        by = rng.choice((signal.SIGINT, signal.SIGKILL))
        pid = child(lambda n=number: JOBS[job](folder, n), log)  # type: ignore[misc]
        time.sleep(rng.random() * length)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, by)
        status = ended(pid)
        found.counts[_ending(status)] += 1
        if status not in (0, INTERRUPTED, -signal.SIGKILL):
            text = log.read_text(encoding="utf-8")[-800:] if log.exists() else ""
            found.problems.append(f"{job} {number}, {by.name}: ended with {status}: {text}")
        if orphans(pid):
            found.problems.append(f"{job} {number}, {by.name}: processes live on")
            os.killpg(pid, signal.SIGKILL)
        if number % CHECKED == 0 or number == count:
            found.look()
    found.sweep(lambda: _once(job, count + 1, folder, log))
    return {"job": job, "count": count, "length": length, **found.counts,
            "problems": found.problems}  # fmt: skip


def _length(job: str, folder: Path, log: Path) -> float:
    """How long a child takes that nobody stops."""
    begin = time.monotonic()
    _once(job, 0, folder, log)
    return time.monotonic() - begin


def _once(job: str, number: int, folder: Path, log: Path) -> None:
    status = ended(child(lambda: JOBS[job](folder, number), log))
    if status:
        said = log.read_text(encoding="utf-8") if log.exists() else ""
        raise SystemExit(f"{job} {number} ended with {status}: {said}")


def _ending(status: int | None) -> str:
    names = {0: "done before", INTERRUPTED: "interrupted", -signal.SIGKILL: "killed"}
    return "hangs" if status is None else names.get(status, f"status {status}")


def _save(path: Path) -> None:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 5])],
        [numpy_helper.from_array(np.ones((8, 5), "float32"), "w")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    print(json.dumps(stopped(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))))
