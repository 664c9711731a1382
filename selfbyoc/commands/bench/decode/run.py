"""Everybody writes the model, then their processes take turns, each a new one in each turn: so that
none waits for another's threads, and models of many GB are in memory one at a time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from ..others import busy_ticks
from ..process import Failed, environment
from ..records import OURS
from ..request import Request
from ..run import cpu_name
from ..setting import Setting
from .configs import key_of
from .contender import BEHIND, BYTES, Job, missing

PROMPTS = (16, 128, 512)  # tokens
_LIMIT = 3600.0  # seconds that somebody may take to write files, or for a turn
# How far from PyTorch's logits somebody may be to count; levels are of each one's own rounding.
_MOST_ERROR = {"float32": 1e-3, "float16": 0.01, "bfloat16": 0.1}
_LEAST_ALIKE = {"float32": 0.9999, "float16": 0.9999, "bfloat16": 0.999, "int8": 0.99, "int4": 0.7}


@dataclass(frozen=True)
class Decoded:
    """One contender with one kind of weights: milliseconds of a token and of prompts, seconds from
    its file to the first token, MB of memory at most and of its files, how far its logits are from
    PyTorch's, of the largest, and how they correlate; GB/s of who only reads, in turns with tokens,
    and the MB that it reads in the time of one. Or why there is nothing.
    """

    contender: str
    weights: str
    token: float = 0.0
    prompts: dict[str, float] = field(default_factory=dict)
    start: float = 0.0
    memory: float = 0.0
    file: float = 0.0
    error: float = 0.0
    alike: float = 0.0
    reading: float = 0.0
    could_read: float = 0.0
    failed: str = ""

    @property
    def counts(self) -> bool:
        """Whether it computes what PyTorch does."""
        near = self.error <= _MOST_ERROR.get(self.weights, float("inf"))
        return not self.failed and near and self.alike >= _LEAST_ALIKE[self.weights]


@dataclass(frozen=True)
class Report:
    """What one run found. `read` is MB of weights that a token reads, and `others` the share of the
    cores' time that went to nobody of these, both by the kind of weights.
    """

    config: str
    cpu: str
    target: str
    threads: int
    at: int
    read: dict[str, float]
    others: dict[str, float]
    rows: list[Decoded]


def measured(
    config: str, weights: Sequence[str], taking: Sequence[str], setting: Setting, asked: Request,
    folder: Path, says: Callable[[str], None],
) -> Report:  # fmt: skip
    """Of each kind of weights by itself."""
    model = folder / f"{Path(config).name}-{key_of(config)}"
    says(f"{config}: seeded weights")
    count = _once(model, lambda: _ask(setting, "model", config=config, folder=str(model)))
    behind = asked.behind or BEHIND
    rows: list[Decoded] = []
    others: dict[str, float] = {}
    for kind in weights:
        jobs = {name: Job(model, model / f"{name}-{kind}", kind, setting.threads, setting.target,
                          behind)
                for name in taking if not missing(name)}  # fmt: skip
        reasons = {name: _why_not(name, job, setting, says) for name, job in jobs.items()}
        failed = {name: why for name, why in reasons.items() if why}
        busy = _busy()
        found = _turns(jobs, failed, setting, asked.quick, says)
        others[kind] = _share(busy, _busy())
        rows += [Decoded(n, kind, failed=failed[n]) if n in failed else _row(n, jobs[n], found[n])
                 for n in jobs]  # fmt: skip
    read = {kind: count * 1e-6 * BYTES[kind] for kind in weights}
    told = str(setting), setting.threads, behind
    return Report(config, cpu_name(), *told, read, others, rows)


def _turns(
    jobs: Mapping[str, Job], failed: dict[str, str], setting: Setting, quick: bool,
    says: Callable[[str], None],
) -> dict[str, list[dict[str, Any]]]:  # fmt: skip
    """What each process said; who fails goes into `failed`."""
    turns, tokens = (1, 8) if quick else (3, 32)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in jobs}
    for turn in range(turns):
        for name in [name for name in jobs if name not in failed]:
            says(f"{jobs[name].weights}: turn {turn + 1} of {turns}, {name}")
            asked = {"job": _told(jobs[name]), "prompts": PROMPTS, "tokens": tokens}
            try:
                found[name].append(_ask(setting, "time", name=name, **asked))
            except Failed as err:
                failed[name] = str(err)
    return found


def _why_not(name: str, job: Job, setting: Setting, says: Callable[[str], None]) -> str:
    """Have somebody write its files; ours anew, for nothing tells whether the compiler changed."""
    says(f"{job.weights}: {name} writes the model")
    if name == OURS:
        (job.files / "done.json").unlink(missing_ok=True)
    try:
        _once(job.files, lambda: _ask(setting, "write", name=name, job=_told(job)))
    except Failed as err:
        return str(err)
    return ""


def _once(folder: Path, make: Callable[[], Any]) -> Any:
    """What `make` found when it filled the folder, now or in another run."""
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done.json"
    if not done.exists():
        found = make()
        done.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(done.read_text(encoding="utf-8"))


def _told(job: Job) -> dict[str, Any]:
    return {name: str(x) if isinstance(x, Path) else x for name, x in asdict(job).items()}


def _ask(setting: Setting, what: str, **args: Any) -> Any:
    """A new process. Raises Failed with its reason."""
    command = [sys.executable, "-m", "selfbyoc.commands.bench.decode.worker"]
    try:
        done = subprocess.run(
            command, input=json.dumps({"what": what, **args}), env=environment(setting.threads),
            capture_output=True, text=True, timeout=_LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as err:
        raise Failed(f"took more than {_LIMIT:g} s") from err
    if not done.stdout:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise Failed(f"died with status {done.returncode}: {last}")
    answer, problem = json.loads(done.stdout)
    if problem:
        raise Failed(problem)
    return answer


def _row(name: str, job: Job, runs: Sequence[dict[str, Any]]) -> Decoded:
    """Medians over turns; of tokens over the faster half: what disturbs one only adds to it."""
    tokens = sorted(t for run in runs for t in run["tokens"])
    mid = {key: median(run[key] for run in runs) for key in ("start", "memory", "error", "alike")}
    prompts = {n: 1e3 * median(run["prompts"][n] for run in runs) for n in runs[0]["prompts"]}
    file = sum(f.stat().st_size for f in job.files.rglob("*") if f.is_file()) * 1e-6
    token = 1e3 * median(tokens[: (len(tokens) + 1) // 2])
    beside = [pair for run in runs for pair in run["beside"]]
    mid["reading"] = median(rate for rate, _ in beside)
    mid["could_read"] = 1e3 * median(rate * seconds for rate, seconds in beside)
    return Decoded(name, job.weights, token, prompts, file=file, **mid)


def _busy() -> tuple[float, float, float]:
    """Seconds: that the cores were busy, that processes which ended ran, and the clock's."""
    ticks, used = busy_ticks(os.sched_getaffinity(0)), resource.getrusage(resource.RUSAGE_CHILDREN)
    cores = float("nan") if ticks is None else ticks / os.sysconf("SC_CLK_TCK")
    return cores, used.ru_utime + used.ru_stime, time.perf_counter()


def _share(before: Sequence[float], after: Sequence[float]) -> float:
    busy, own, clock = (b - a for a, b in zip(before, after, strict=True))
    return max(0.0, (busy - own) / (clock * len(os.sched_getaffinity(0))))
