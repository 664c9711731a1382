"""A whole run: who takes part, on which workloads, and a report that grows with each of them."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from ...errors import InputError
from ...machine import host
from ...tvm import GENERATION, tvm
from ...version import __version__
from .contenders import CONTENDERS, OPEN, Contender
from .measure import Method, measure
from .process import OPEN_WORKER, WORKER, Failed, Process
from .quantised import LEVELS
from .records import OURS, STATIC, Report, Result, Row, read_report, write_report
from .roof import Roof
from .setting import Setting, make_setting
from .suite import NAMED, SWEEP, suite
from .workload import Workload

# Slow to build or to run, and never the fastest: in the sweep, and of levels, only when they are
# asked for.
SLOW_ONES = ("inductor", "zentorch", "iree", "executorch", "litert", "stacked", "tvm")


@dataclass(frozen=True)
class Selection:
    """What to run: the files of a user where there are any, else the suite's.

    `only` are beginnings of names, of all groups; else the seven and `groups`. `is_open`: a size of
    the user's model is, and everybody loads it once.
    """

    only: Sequence[str] = ()
    groups: Sequence[str] = (NAMED,)
    contenders: Sequence[str] = ()
    minilm: Path | None = None
    own: Sequence[Workload] = ()
    is_open: bool = False

    @property
    def known(self) -> Sequence[Contender]:
        """All that could take part."""
        return OPEN if self.is_open else CONTENDERS

    def workloads(self) -> list[Workload]:
        """In the order of the suite, or of the user's files."""
        if self.own:
            return list(self.own)
        known = suite(self.minilm)
        if not self.only:
            return [w for w in known if w.group in self.groups]
        found = [w for w in known if w.name.lower().startswith(tuple(map(str.lower, self.only)))]
        for start in self.only:
            if not any(w.name.lower().startswith(start.lower()) for w in found):
                raise InputError(f"no workload's name begins with {start!r}; see --list")
        return found

    def names(self, group: str) -> list[str]:
        """Who takes part in a group; ours always does, and so does ours for each length."""
        known = [c.name for c in self.known]
        unknown = sorted(set(self.contenders) - {*known, "all"})
        if unknown:
            raise InputError(f"unknown {unknown}; known: {known}, or all")
        if "all" in self.contenders:
            return known
        if self.contenders:
            return [n for n in known if n in (OURS, STATIC, *self.contenders)]
        return [n for n in known if group not in (SWEEP, LEVELS) or n not in SLOW_ONES]


@contextmanager
def _processes(selection: Selection, threads: int) -> Iterator[dict[str, Process]]:
    """One for each contender that can be here."""
    worker = OPEN_WORKER if selection.is_open else WORKER
    there = [c.name for c in selection.known if c.missing() is None]
    found = {name: Process(name, threads, worker) for name in there}
    try:
        yield found
    finally:
        for process in found.values():
            process.close()


def run(
    selection: Selection, method: Method, path: Path | None = None, resume: bool = False,
    done: Callable[[Row], None] = lambda row: None,
    says: Callable[[str, str], None] = lambda name, text: None,
    setting: Setting | None = None,
) -> Report:  # fmt: skip
    """Measure and write the report after each workload; with `resume`, only what it lacks, what
    was disturbed, and files that have changed.
    """
    workloads, setting = selection.workloads(), setting or make_setting()
    for workload in workloads:
        selection.names(workload.group)  # an unknown name is an error before anything runs
    says("", "the machine's peak and bandwidth")
    report = _resumed(path, setting) if resume else None
    known = {(r.name, r.key) for r in report.rows if r.built and not r.disturbed} if report else ()
    report = report or header(setting, method)
    with _processes(selection, setting.threads) as processes:
        for workload in workloads:
            if (workload.name, workload.key) in known:
                says(workload.name, "known already")
                continue
            names = selection.names(workload.group)
            taking = {n: p for n, p in processes.items() if n in names}
            row = measure(workload, taking, setting, method, partial(says, workload.name))
            row = _with_absent(row, [c for c in selection.known if c.name in names])
            report = report.with_row(row)
            if path is not None:
                write_report(path, report)
            done(row)
    return report


def _with_absent(row: Row, asked: Sequence[Contender]) -> Row:
    for contender in asked:
        reason = contender.missing()
        if reason is not None:
            row.results[contender.name] = Result(skipped=reason)
    return row


def _resumed(path: Path | None, setting: Setting) -> Report | None:
    """The report so far; one of another TVM generation, target or number of threads is no
    beginning of this run.
    """
    if path is None:
        raise InputError("--resume needs --json FILE, the report to go on with")
    if not path.exists():
        return None
    report = read_report(path)
    if report.generation != GENERATION:
        raise InputError(f"{path} was measured with {report.generation}, this is {GENERATION}")
    if (report.target, report.threads) != (str(setting), setting.threads):
        raise InputError(
            f"{path} was measured for {report.target} on {report.threads} threads, this is "
            f"{setting} on {setting.threads}"
        )
    return report


def header(setting: Setting, method: Method) -> Report:
    facts = {
        "CPU": cpu_name(),
        "LLVM's name of it": host.cpu() or "unknown",
        "caches": ", ".join(f"L{n} {size >> 10} KiB" for n, size in host.cache_bytes().items()),
        "system": f"{platform.system()} {platform.release()}",
        "date": datetime.date.today().isoformat(),
    }
    timing = {
        "windows": method.turns * method.windows, "turns": method.turns,
        "seconds": method.window, "builds": method.builds,
    }  # fmt: skip
    roofs = _roofs(setting, method)
    return Report(
        facts, _versions(), GENERATION, setting.threads, timing, roofs, target=str(setting)
    )


def _roofs(setting: Setting, method: Method) -> tuple[Roof, ...]:
    """On one thread and on all: a process each, for TVM reads the number of threads once."""
    processes = {n: Process(OURS, n) for n in sorted({1, setting.threads})}
    try:
        for n, process in processes.items():
            process.ask("prepared", setting.with_threads(n))
        with method.exclusive():
            return tuple(process.ask("roof") for process in processes.values())
    except Failed as err:
        raise InputError(f"the peak of {setting} cannot be measured here: {err}") from err
    finally:
        for process in processes.values():
            process.close()


def cpu_name() -> str:
    """What the system calls the CPU, such as AMD EPYC."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            line = next((x for x in file if x.startswith("model name")), "")
    except OSError:  # no Linux
        return platform.processor() or platform.machine()
    return line.partition(":")[2].strip() or platform.machine()


def _versions() -> dict[str, str]:
    found = {
        "Python": platform.python_version(), "selfbyoc": __version__, "TVM": tvm.__version__,
    }  # fmt: skip
    for name in sorted({name for c in CONTENDERS for name in c.versions}):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
