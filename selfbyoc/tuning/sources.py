"""Where candidates come from: the composite's own schedule, or MetaSchedule's own search."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..codegen.records.workload import stacked
from ..codegen.tuning_record import Tuned
from ..errors import one_line
from ..tvm import target_dict
from ..tvm.tune import meta_schedule
from ..tvm.types import TuneContext
from .build import bare
from .evolution import Start, begin, proposals
from .meta import MeasureCandidate, RunnerResult, candidate_of
from .process import Failed, Process
from .run import Run
from .search import Candidate, Search

if TYPE_CHECKING:
    import onnx

ms = meta_schedule()
logger = logging.getLogger(__name__)

_ATTEMPTS = 20  # proposals for each candidate of a batch, where many come out as what is known
_POOL = 3  # candidates for each that is measured, for a cost model to choose from
_UNJUDGED = 0.2  # of a batch: the model may be wrong
# MetaSchedule's default is 512, of which each batch costs 10 s; it is meant for batches of 64.
POPULATION = 256
SECONDS = 120.0  # for one generation; some functions take MetaSchedule minutes for one trace
_APART = "%s: MetaSchedule's rules raise; its tiles are not joined with what reads them"
_EMPTY = 3  # batches of nothing new, after which the space counts as searched


class CostModel:
    """MetaSchedule's cost model over candidates of any schedule; one that fails is left out."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model

    def ranked(self, context: TuneContext, candidates: Sequence[int]) -> list[int]:
        """Positions, the most promising first."""
        scores = self._asked("predict", context, candidates) if candidates else None
        places = range(len(candidates))
        return list(places) if scores is None else sorted(places, key=lambda i: -scores[i])

    def learn(
        self,
        context: TuneContext,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Train the model with what was measured."""
        self._asked("update", context, candidates, results)

    def _asked(self, method: str, *args: object) -> Any:
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

    def __init__(self, run: Run, search: Search, costs: CostModel, seed: int) -> None:
        self.run, self.search, self.costs = run, search, costs
        self.context: Any = None
        self._pool: list[tuple[Candidate, Any]] = []
        self._random = random.Random(seed)

    def begin(self, context: TuneContext) -> None:
        """Keep MetaSchedule's context, which its cost model knows a task by."""
        self.context = context

    def candidates(self, count: int) -> list[MeasureCandidate]:
        """At most so many; none where the space is exhausted."""
        wanted = count if self.costs.model is None else _POOL * count
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

    def _taken(self, count: int) -> list[MeasureCandidate]:
        """Out of the pool; what stays there is ranked again with the next batch."""
        order = self.costs.ranked(self.context, [c for _, c in self._pool])
        sure = max(1, round(count * (1 - _UNJUDGED))) if self.costs.model else count
        best, rest = order[:sure], order[sure:]
        chosen = {*best, *self._random.sample(rest, min(count - len(best), len(rest)))}
        found = [made for i, (_, made) in enumerate(self._pool) if i in chosen]
        self._pool = [pair for i, pair in enumerate(self._pool) if i not in chosen]
        return found

    def learn(
        self,
        made: Sequence[Candidate],
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Tell the cost model."""
        self.costs.learn(self.context, candidates, results)

    def end(self) -> None:
        """Nothing to end."""


class MetaSpace:
    """MetaSchedule's own: rules of the target make the space, evolution searches it."""

    def __init__(
        self, run: Run, search: Search, model: onnx.ModelProto, batch: int, seed: int
    ) -> None:
        self.run, self.search = run, search
        task = search.task
        # The rules for intrinsics are for products of 8 bits alone, and take 20 s to load.
        has_bytes = any(v.dtype in ("int8", "uint8") for v in task.source.graph.inputs)
        kind = str(task.target.kind)
        self._start = Start(
            bare(stacked(task.source, task.target)),
            target_dict(task.target),
            "from-target" if has_bytes or kind != "llvm" else kind,
            isinstance(model, ms.cost_model.XGBModel),
            batch,
            POPULATION,
            task.place.cores,
            seed,
        )
        self._process = Process()
        self._positions: dict[str, int] = {}  # of the last proposals, by name
        self._found: dict[int, float] = {}

    def begin(self, _: object) -> None:
        """Nothing yet: the default is measured first."""

    def candidates(self, count: int) -> list[MeasureCandidate]:
        """At most so many; none where evolution finds no others, or takes too long."""
        for _ in range(_EMPTY):
            try:
                traces = self._proposed()
            except Failed as err:
                self.search.error = f"MetaSchedule's search: {err}"
                return []
            if not traces or self.run.over:
                return []
            if made := self._made(traces[:count]):
                return made
        return []

    def _proposed(self) -> list[Any]:
        """Traces as data, from the process."""
        if not self._process.calls:
            known = [r for r in self.search.measured if r.trace is not None]
            told = tuple((r.trace, r.seconds or 0.0) for r in known[: POPULATION // 8])
            start = replace(self._start, known=told)
            if not self._process.call(begin, start, seconds=self._limit):
                logger.warning(_APART, self.search.task.composite.name)
        found, self._found = self._found, {}
        return self._process.call(proposals, found, seconds=self._limit)

    @property
    def _limit(self) -> float:
        left = self.run.left
        return SECONDS if left is None else max(1.0, min(SECONDS, left))

    def _made(self, traces: Sequence[Any]) -> list[MeasureCandidate]:
        made = [self.run.propose(self.search, Tuned(trace=trace)) for trace in traces]
        self._positions = {m.name: i for i, m in enumerate(made) if m is not None}
        return [candidate_of(m, self.run) for m in made if m is not None]

    def learn(
        self,
        made: Sequence[Candidate],
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Keep for evolution what it is told with the next question."""
        for candidate, result in zip(made, results, strict=True):
            if candidate.name in self._positions and result.run_secs is not None:
                self._found[self._positions[candidate.name]] = float(result.run_secs[0])

    def end(self) -> None:
        """End the process."""
        self._process.end()
