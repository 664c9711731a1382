"""A run of the fuzzer: programs grown one after the other, judged in worker processes."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from ...codegen.target import host_target
from ...common.files import read_text
from ...errors import InputError
from ...models.onnx_model import load_onnx
from ...models.shapes import Shape, check_known
from ...ops.vocabulary import KINDS
from ...tvm import GENERATION
from .attempt import composites_of
from .grow import grown
from .infer import infer
from .judge import Finding, Judge
from .like.draw import Draw
from .like.files import read_mutant, write_mutant
from .like.judge import MutantJudge
from .like.smaller import smaller
from .like.source import read
from .program import Program, from_json
from .seeds import seeds
from .shrink import shrunk
from .targets import Setting, others
from .types import Invalid
from .writing import write

SAME = 3  # of findings that may be one fault, so many are shrunk and written


@dataclass(frozen=True)
class Plan:
    """What to do: for how long or how many programs, from which seed, with how many workers."""

    seconds: float = 60.0
    count: int | None = None
    seed: int = 0
    jobs: int = 1
    timeout: float = 120.0
    runs: int = 150  # for shrinking one finding
    folder: Path | None = None
    setting: Setting = field(default_factory=Setting)
    onnx: bool = False  # programs are ONNX models
    like: tuple[Path, ...] = ()  # mutants of these ONNX files instead of programs
    shapes: Mapping[str, Shape] = field(default_factory=dict)  # of inputs of these files


@dataclass
class Result:
    """What a run did and found."""

    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    matches: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    alike: Counter[str] = field(default_factory=Counter)  # all findings, by key
    notes: list[tuple[str, Any]] = field(default_factory=list)  # no findings; worth a look

    @property
    def an_hour(self) -> float:
        """Programs an hour."""
        return 3600 * self.counts["graphs"] / self.seconds if self.seconds else 0.0

    def to_json(self, plan: Plan) -> str:
        """The plan, the figures and the findings as data."""
        found = [
            {"kind": f.kind, "text": f.text, "matched": f.matched, "number": f.number,
             "case": json.loads(f.program.to_json())}
            for f in self.findings
        ]  # fmt: skip
        text = plan.setting.target or str(host_target())
        data = {
            "generation": GENERATION, "target": text, "opt_level": plan.setting.opt_level,
            "onnx": plan.onnx, "like": [path.name for path in plan.like], "seed": plan.seed,
            "seconds": round(self.seconds, 1), "graphs_an_hour": round(self.an_hour),
            "counts": dict(self.counts), "matches": dict(self.matches),
            "alike": dict(self.alike), "findings": found,
            "notes": [{"text": t, "case": json.loads(p.to_json())} for t, p in self.notes],
        }  # fmt: skip
        return json.dumps(data, indent=1)


def mutants(plan: Plan) -> Iterator[tuple[int, Draw]]:
    """What the mutants of a plan are drawn from, with their numbers."""
    check_known(list(map(load_onnx, plan.like)), plan.shapes)
    sources = tuple(read(path, plan.shapes) for path in plan.like)
    return ((n, Draw(sources, plan.seed, n, _targets(plan))) for n in _numbers(plan))


def _numbers(plan: Plan) -> Iterable[int]:
    return itertools.count() if plan.count is None else range(plan.count)


def _targets(plan: Plan) -> tuple[str, ...]:
    """Who names a target means that one."""
    return () if plan.setting.target is not None else others()


def programs(plan: Plan) -> Iterator[tuple[int, Program]]:
    """The programs of a plan with their numbers, without end unless it says how many."""
    start = list(filter(_is_valid, seeds(composites_of(plan.setting.composites))))
    if plan.onnx:  # which has quantised ops of its own, and nothing like ours
        start = [p for p in start if all("float" in p.nodes[i].dtype for i in p.leaves())]
        start = [p for p in start if not any(KINDS[kind].types for kind in p.kinds())]
    if not start:
        text = "the composites have no cases to grow programs from"
        raise InputError(f"{text}; `selfbyoc lint` says what is wrong with each")
    targets = _targets(plan)
    return ((n, grown(start, plan.seed, n, plan.onnx, targets)) for n in _numbers(plan))


def _is_valid(program: Program) -> bool:
    try:
        infer(program)
    except Invalid:  # a case of a user's that is no program
        return False
    return True


def fuzz(plan: Plan, watch: Callable[[Finding], None] = lambda finding: None) -> Result:
    """Run a plan; `watch` sees each finding, shrunk, when it is there."""
    run = _Run(plan, watch)
    with ThreadPoolExecutor(plan.jobs) as pool:
        for done in [pool.submit(run.work) for _ in range(plan.jobs)]:
            done.result()
    run.result.seconds = time.monotonic() - run.begin
    run.result.findings.sort(key=lambda f: f.number)
    return run.result


class _Run:
    def __init__(self, plan: Plan, watch: Callable[[Finding], None]) -> None:
        self.plan, self.watch = plan, watch
        self.result, self.lock = Result(), Lock()
        self.programs: Iterator[tuple[int, Any]] = mutants(plan) if plan.like else programs(plan)
        self.begin = time.monotonic()

    def work(self) -> None:
        """Judge programs until there are no more, or the time is up."""
        kind = MutantJudge if self.plan.like else Judge
        judge = kind(self.plan.setting, self.plan.timeout)
        try:
            while (taken := self._next()) is not None:
                number, program = taken
                found = judge.verdict(program)
                if found is not None:
                    self._found(judge, found, number)
        finally:
            judge.end()
            with self.lock:
                self.result.counts.update(judge.counts)
                self.result.matches.update(judge.matches)
                self.result.notes += judge.notes

    def _next(self) -> tuple[int, Any] | None:
        with self.lock:
            is_late = time.monotonic() - self.begin > self.plan.seconds
            return None if is_late else next(self.programs, None)

    def _found(self, judge: Judge | MutantJudge, found: Finding, number: int) -> None:
        found = Finding(found.kind, found.text, found.program, found.matched, number)
        with self.lock:
            self.result.alike[found.key] += 1
            is_new = self.result.alike[found.key] <= SAME
        if not is_new:
            return
        before = Counter(judge.counts), Counter(judge.matches), list(judge.notes)
        steps = smaller if self.plan.like else None
        small = shrunk(found, judge.verdict, self.plan.runs, 4 * self.plan.timeout, steps)
        judge.counts, judge.matches, judge.notes = before  # the figures are of what grew
        judge.counts["runs to shrink"] += 1
        with self.lock:
            self.result.findings.append(small)
            if self.plan.folder is not None:
                keep = write_mutant if self.plan.like else write
                keep(self.plan.folder, small, found.program)
            self.watch(small)


def replay(
    case: str | Path, setting: Setting | None = None, timeout: float = 120.0
) -> Finding | None:
    """The verdict on one case, a file (JSON, or an ONNX model of fixed sizes) or its text, in a
    process of its own.
    """
    return replayed(case, setting, timeout)[0]


def replayed(
    case: str | Path, setting: Setting | None = None, timeout: float = 120.0
) -> tuple[Finding | None, Mapping[str, int]]:
    """The verdict on one case, and what was done for it."""
    judge: Any
    given: Any
    if isinstance(case, Path) and case.suffix == ".onnx":
        judge, given = MutantJudge(setting or Setting(), timeout), read_mutant(case)
    else:
        judge, given = Judge(setting or Setting(), timeout), from_json(_text(case))
    try:
        return judge.verdict(given), judge.counts
    finally:
        judge.end()


def _text(case: str | Path) -> str:
    if isinstance(case, str):
        return case
    return read_text(case)
