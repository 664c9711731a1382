"""Our parts of MetaSchedule: its scheduler decides which task is next, and calls these.

Each callback returns normally whatever happens: TVM 0.17 would swallow a KeyboardInterrupt. What
was raised is kept in `Run.stop`, after which nothing more is tried.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from ..codegen.records.record import Record
from ..tvm import Schedule, te, tvm
from ..tvm.tune import derived, meta_schedule, tune_context
from ..tvm.types import IRModule, TuneContext
from .run import Run
from .search import Candidate, Search

MeasureCandidate: TypeAlias = Any  # these are of MetaSchedule
BuilderInput: TypeAlias = Any
BuilderResult: TypeAlias = Any
RunnerInput: TypeAlias = Any
RunnerResult: TypeAlias = Any
R = TypeVar("R")


class Source(Protocol):
    """Where a search's candidates come from."""

    def begin(self, context: TuneContext) -> None: ...
    def candidates(self, count: int) -> list[MeasureCandidate]: ...
    def learn(
        self,
        made: Sequence[Candidate],
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None: ...
    def end(self) -> None: ...


ms = meta_schedule()

TRIAL = "tefuse.trial"  # attribute of a candidate's function: its name in this run


def kept(otherwise: Callable[..., Any]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Of a callback: keep what it raises, and return what `otherwise` makes of its arguments."""

    def around(callback: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(callback)
        def call(self: Any, *args: object) -> R:
            try:
                return callback(self, *args)
            except BaseException as err:  # TVM would drop it: the run raises it when it ends
                self.run_.stop = self.run_.stop or err
                return otherwise(*args)

        return call

    return around


def candidate_of(made: Candidate, run: Run) -> MeasureCandidate:
    """What MetaSchedule knows as a candidate: a schedule, here of the function as it is."""
    run.candidates[made.name] = made
    func = made.variant.func.with_attr(TRIAL, made.name)
    return ms.search_strategy.MeasureCandidate(Schedule(tvm.IRModule({"main": func})), [])


def name_of(mod: IRModule) -> str:
    """The name of the candidate that `candidate_of` gave to MetaSchedule."""
    return str(mod["main"].attrs[TRIAL])


def context(search: Search, strategy: Strategy, seed: int) -> TuneContext:
    """A task of MetaSchedule. It sees no loops of ours but those of candidates: its function only
    names the task.
    """
    a = te.placeholder((1,), name="a")
    body = te.create_prim_func([a, te.compute((1,), lambda i: a[i] + 1.0, name="b")])
    body = body.with_attr("global_symbol", search.task.key)
    return tune_context(
        mod=tvm.IRModule({"main": body}),
        target=search.task.target,
        space_generator=ms.space_generator.ScheduleFn(
            lambda _: None, sch_rules=[], postprocs=[], mutator_probs={}
        ),
        search_strategy=strategy,
        task_name=str(search.task),
        rand_state=seed + 1,
        num_threads=search.task.place.cores,
    )


@derived
class Strategy(ms.search_strategy.PySearchStrategy):  # type: ignore[name-defined]
    """Proposes the candidates of one task: the default, then what `source` thinks of."""

    def __init__(self, run: Run, search: Search, source: Source, batch: int) -> None:
        super().__init__()
        self.run_, self.search, self.source, self.batch = run, search, source, batch

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        self.context = context

    @kept(lambda *_: None)
    def pre_tuning(self, *_: object) -> None:
        self.source.begin(self.context)

    @kept(lambda *_: None)
    def post_tuning(self) -> None:
        self.source.end()

    @kept(lambda *_: None)
    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        search = self.search
        if self.run_.over or not search.left:
            return None
        if search.default.code not in search.records:
            first = search.first()
            search.records[first.code] = None
            return [candidate_of(first, self.run_)]
        found = self.source.candidates(min(self.batch, search.left))
        search.exhausted = not found and not self.run_.over
        if not found:
            self.source.end()
        return found or None

    @kept(lambda *_: None)
    def notify_runner_results(
        self, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        names = [name_of(c.sch.mod) for c in candidates]
        made = [self.run_.candidates.pop(name) for name in names]
        for candidate in made:  # the time was up before it was measured
            if candidate.search.records.get(candidate.code, 0) is None:
                del candidate.search.records[candidate.code]
        self.source.learn(made, candidates, results)

    def clone(self) -> Strategy:
        return Strategy(self.run_, self.search, self.source, self.batch)


@derived
class Builder(ms.builder.PyBuilder):  # type: ignore[name-defined]
    """Compiles candidates by name. TVM's own starts new processes for each batch."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run_ = run

    @kept(lambda inputs: [_built(None, "stopped") for _ in inputs])
    def build(self, inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        run = self.run_
        made = [run.candidates[name_of(i.mod)] for i in inputs]
        errors = ["the time is up"] * len(made) if run.over else run.build(made)
        if not run.over:
            for candidate, error in zip(made, errors, strict=True):
                if error:
                    run.note(candidate, "failed", error=error)
        return [
            _built(None, error) if error else _built(str(run.artifact(candidate)), None)
            for candidate, error in zip(made, errors, strict=True)
        ]


def _built(path: str | None, error: str | None) -> BuilderResult:
    return ms.builder.BuilderResult(path, error)


@derived
class Runner(ms.runner.PyRunner):  # type: ignore[name-defined]
    """Measures candidates beside the default. What it tells MetaSchedule is the default's first
    time, scaled by how the two compare now.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run_ = run

    @kept(lambda inputs: [Done(None, "stopped") for _ in inputs])
    def run(self, inputs: Sequence[RunnerInput]) -> list[Done]:
        made = [self.run_.candidates[Path(str(i.artifact_path)).stem] for i in inputs]
        found = self.run_.measure(made)
        return [
            Done(_seconds(candidate, record), record.error if record else "the time is up")
            for candidate, record in zip(made, found, strict=True)
        ]


def _seconds(candidate: Candidate, record: Record | None) -> list[float] | None:
    default = candidate.search.records.get(candidate.search.default.code)
    if record is None or record.ratio == float("inf") or default is None:
        return None
    return [record.ratio * (default.seconds or 1.0)]


@derived
class Done(ms.runner.PyRunnerFuture):  # type: ignore[name-defined]
    """A result that is there already: measuring waits, so that nothing disturbs it."""

    def __init__(self, seconds: list[float] | None, error: str) -> None:
        super().__init__()
        self.found = ms.runner.RunnerResult(seconds, None if seconds else error or "failed")

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return self.found
