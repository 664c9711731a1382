"""MetaSchedule's own search for one task, in a process of its own: it may crash, or take minutes
for a single trace of a function with several heavy ops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..tvm import Schedule, make_target, tvm
from ..tvm.tune import (
    apply_trace,
    meta_schedule,
    schedule_error,
    trace_data,
    tune_context,
    xgboost_model,
)
from ..tvm.types import ScheduleRule, Trace, TuneContext

Traces = Sequence[tuple[Any, float]]  # with the seconds that each took


@dataclass(frozen=True)
class Start:
    """What the search begins with: a stacked function, and what was measured before.

    rules       of MetaSchedule: "from-target", or a kind of target
    cost_model  whether there is xgboost's; otherwise evolution guesses
    """

    func: Any
    target: Mapping[str, Any]
    rules: str
    cost_model: bool
    batch: int
    population: int
    cores: int
    seed: int
    known: Traces = field(default=())


class _Evolution:
    """The state of the search, in its process."""

    def __init__(self, start: Start) -> None:
        self.ms = ms = meta_schedule()
        self.target = make_target(dict(start.target))
        self.mod = tvm.IRModule({"main": start.func})
        self.database = ms.database.MemoryDatabase()
        self.workload = self.database.commit_workload(self.mod)
        model = ms.cost_model.RandomModel(seed=start.seed)
        if start.cost_model:
            model = xgboost_model(num_warmup_samples=16, num_tuning_cores=start.cores)
        self.model = model
        self.candidates: list[Any] = []
        self.joins = True
        for trace, seconds in start.known:
            sch = Schedule(self.mod)
            apply_trace(sch, trace)
            self.commit(sch.trace, seconds)
        self.context, spaces = self._spaces(start)
        self.context.pre_tuning(1 << 20, start.batch, spaces, self.database, model)

    def _spaces(self, start: Start) -> tuple[TuneContext, Sequence[Schedule]]:
        """What the rules make of the function, and the task that they belong to.

        The rule for tiles joins a sum with its one reader, even if that reads others too, as a
        concatenate does; then TVM's primitive raises (0.17, 0.27), and we leave the joining out.
        """
        found = self._task(start, start.rules, start.rules)
        try:
            return found, found.generate_design_space()
        except schedule_error():
            self.joins = False
            found = self._task(start, self._rules_for_tiles_alone(), "llvm")
            return found, found.generate_design_space()

    def _task(self, start: Start, rules: str | Sequence[ScheduleRule], kind: str) -> TuneContext:
        return tune_context(
            intrinsics=rules == "from-target",
            mod=self.mod,
            target=self.target,
            space_generator=self.ms.space_generator.PostOrderApply(
                sch_rules=rules, postprocs=kind, mutator_probs=kind
            ),
            search_strategy=self.ms.search_strategy.EvolutionarySearch(
                population_size=start.population, init_min_unmeasured=start.population // 10
            ),
            rand_state=start.seed + 1,
            num_threads=start.cores,
        )

    def _rules_for_tiles_alone(self) -> list[ScheduleRule]:
        """MetaSchedule's for CPUs, tiles not joined with what reads them."""
        rules = self.ms.schedule_rule
        tiles = rules.MultiLevelTiling("SSRSRS", max_innermost_factor=64)
        usual = rules.ScheduleRule.create("llvm")
        return [tiles if isinstance(r, rules.MultiLevelTiling) else r for r in usual]

    def commit(self, trace: Trace, seconds: float) -> None:
        """Note what evolution begins the next generation with."""
        found = self.ms.database.TuningRecord(trace, self.workload, [seconds], self.target, None)
        self.database.commit_tuning_record(found)

    def proposals(self) -> list[Any]:
        """Traces as data."""
        self.candidates = list(self.context.generate_measure_candidates() or [])
        unknown = self.ms.runner.RunnerResult(None, "not measured yet")
        if self.candidates:  # it only counts them
            self.context.notify_runner_results(self.candidates, [unknown] * len(self.candidates))
        return [trace_data(candidate.sch.trace) for candidate in self.candidates]

    def learn(self, found: Mapping[int, float]) -> None:
        """The seconds of the last proposals, by position."""
        made = [self.candidates[i] for i in found]
        for candidate, seconds in zip(made, found.values(), strict=True):
            self.commit(candidate.sch.trace, seconds)
        results = [self.ms.runner.RunnerResult([s], None) for s in found.values()]
        if made:
            self.model.update(self.context, made, results)


_under_way: list[_Evolution] = []  # at most one: each search has its process


def begin(start: Start) -> bool:
    """Make the space; -> whether its tiles are joined with what reads them."""
    _under_way[:] = [_Evolution(start)]
    return _under_way[0].joins


def proposals(found: Mapping[int, float]) -> list[Any]:
    """The next traces, after what was measured of the last ones (seconds by position)."""
    (evolution,) = _under_way
    evolution.learn(found)
    return evolution.proposals()
