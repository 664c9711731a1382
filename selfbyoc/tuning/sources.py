"""Where candidates come from: the composite's own schedule, or MetaSchedule's own search."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import Any

from .._tvm import Schedule, tvm
from .._tvm_tune import apply_trace, meta_schedule, trace_data, tune_context
from ..codegen.tuned import Tuned
from ..errors import one_line
from .meta import candidate_of
from .records import Record
from .run import Run
from .search import Candidate, Search
from .workload import stacked

ms = meta_schedule()
logger = logging.getLogger(__name__)

_ATTEMPTS = 20  # proposals for each candidate of a batch, where many come out as what is known
_POOL = 3  # candidates for each that is measured, for a cost model to choose from
_UNJUDGED = 0.2  # of a batch: the model may be wrong
# MetaSchedule's default is 512, of which each batch costs 10 s; it is meant for batches of 64.
POPULATION = 256
_EMPTY = 3  # batches of nothing new, after which the space counts as searched
_ENDLESS = 1 << 20


class Judge:
    """MetaSchedule's cost model over candidates of any schedule; one that fails is left out."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def ranked(self, context: Any, candidates: Sequence[Any]) -> list[int]:
        """Positions, the most promising first."""
        scores = self._asked("predict", context, candidates)
        places = range(len(candidates))
        return list(places) if scores is None else sorted(places, key=lambda i: -scores[i])

    def learn(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Train the model with what was measured."""
        self._asked("update", context, candidates, results)

    def _asked(self, method: str, *args: Any) -> Any:
        if self.model is None:
            return None
        try:
            return getattr(self.model, method)(*args)
        except Exception as err:  # a model is an aid: its features know not all of TensorIR
            logger.warning("the cost model is left out: %s", one_line(err))
            self.model = None
            return None


class OwnSpace:
    """Candidates of the composite's own schedule under other decisions."""

    def __init__(self, run: Run, search: Search, judge: Judge, seed: int) -> None:
        self.run, self.search, self.judge = run, search, judge
        self.context: Any = None
        self._pool: list[tuple[Candidate, Any]] = []
        self._random = random.Random(seed)

    def begin(self, context: Any) -> None:
        """Keep MetaSchedule's context, which its cost model knows a task by."""
        self.context = context

    def candidates(self, count: int) -> list[Any]:
        """At most so many; none where the space is exhausted."""
        wanted = count if self.judge.model is None else _POOL * count
        for _ in range(_ATTEMPTS * wanted):
            if len(self._pool) >= wanted or self.run.over:
                break
            told = self.search.space.proposal(self.search.parents)
            if told is None:
                break
            made = self.run.propose(self.search, Tuned(told))
            if made is not None:
                self._pool.append((made, candidate_of(made, self.run)))
        return self._taken(count)

    def _taken(self, count: int) -> list[Any]:
        """Out of the pool; what stays there is ranked again with the next batch."""
        order = self.judge.ranked(self.context, [c for _, c in self._pool])
        sure = max(1, round(count * (1 - _UNJUDGED))) if self.judge.model else count
        best, rest = order[:sure], order[sure:]
        chosen = {*best, *self._random.sample(rest, min(count - len(best), len(rest)))}
        found = [made for i, (_, made) in enumerate(self._pool) if i in chosen]
        self._pool = [pair for i, pair in enumerate(self._pool) if i not in chosen]
        return found

    def learn(self, made: Sequence[Candidate], candidates: Any, results: Any) -> None:
        """Tell the cost model."""
        self.judge.learn(self.context, candidates, results)


class MetaSpace:
    """MetaSchedule's own: rules of the target make the space, evolution searches it."""

    def __init__(self, run: Run, search: Search, model: Any, batch: int, seed: int) -> None:
        self.run, self.search = run, search
        self.model = ms.cost_model.RandomModel(seed=seed) if model is None else model
        task = search.task
        self.mod = tvm.IRModule({"main": stacked(task.source, task.target)})
        self.batch = batch
        self.database = ms.database.MemoryDatabase()
        self.workload = self.database.commit_workload(self.mod)
        # The rules for intrinsics are for products of 8 bits alone.
        has_bytes = any(v.dtype in ("int8", "uint8") for v in task.source.graph.inputs)
        kind = str(task.target.kind)
        rules = "from-target" if has_bytes or kind != "llvm" else kind
        self.context = tune_context(
            intrinsics=has_bytes,
            mod=self.mod,
            target=task.target,
            space_generator=ms.space_generator.PostOrderApply(
                sch_rules=rules, postprocs=rules, mutator_probs=rules
            ),
            search_strategy=ms.search_strategy.EvolutionarySearch(
                population_size=POPULATION, init_min_unmeasured=POPULATION // 10
            ),
            task_name=str(task),
            rand_state=seed + 1,
            num_threads=task.place.cores,
        )
        self._under_way: dict[str, Any] = {}

    def begin(self, _: Any) -> None:
        """Make the space; where MetaSchedule has none for the task, its default alone is left."""
        try:
            spaces = self.context.generate_design_space()
            self.context.pre_tuning(_ENDLESS, self.batch, spaces, self.database, self.model)
            for record in self.search.measured[: POPULATION // 8]:
                if record.trace is not None:
                    self._remember(record)
        except Exception as err:  # TVM raises plain errors of many types
            self.search.error = f"MetaSchedule makes no space of it: {one_line(err)}"

    def _remember(self, record: Record) -> None:
        """What an earlier run measured, for evolution to begin with."""
        sch = Schedule(self.mod)
        apply_trace(sch, record.trace)
        self._commit(sch.trace, [record.seconds])

    def _commit(self, trace: Any, seconds: Any) -> None:
        target = self.search.task.target
        found = ms.database.TuningRecord(trace, self.workload, seconds, target, None)
        self.database.commit_tuning_record(found)

    def candidates(self, count: int) -> list[Any]:
        """At most so many; none where evolution finds no others."""
        for _ in range(_EMPTY):
            found = self.context.generate_measure_candidates()
            if not found or self.run.over:
                return []
            unknown = ms.runner.RunnerResult(None, "not measured yet")
            self.context.notify_runner_results(found, [unknown] * len(found))  # it only counts them
            made = [self._candidate(candidate) for candidate in found[:count]]
            if any(made):
                return [m for m in made if m is not None]
        return []

    def _candidate(self, found: Any) -> Any:
        made = self.run.propose(self.search, Tuned(trace=trace_data(found.sch.trace)))
        if made is None:
            return None
        self._under_way[made.name] = found
        return candidate_of(made, self.run)

    def learn(self, made: Sequence[Candidate], candidates: Any, results: Any) -> None:
        """Tell evolution and the cost model."""
        for candidate, result in zip(made, results, strict=True):
            found = self._under_way.pop(candidate.name, None)
            if found is not None and result.run_secs is not None:
                self._commit(found.sch.trace, result.run_secs)
        self.model.update(self.context, candidates, results)
