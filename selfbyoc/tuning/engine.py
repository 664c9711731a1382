"""`tune`: MetaSchedule's task scheduler over the kernels of a model, each with its own space."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from ..codegen.records.record import FAILED, begin
from ..codegen.target import host_target
from ..common.files import expanded
from ..common.threads import core_count
from ..errors import InputError, TuningError
from ..machine import host
from ..partition import check_module, check_target, is_partitioned, partition_for_tefuse
from ..tvm.tune import meta_schedule
from ..tvm.types import IRModule, NDArray
from .build import Builders
from .contest import finish
from .cost_model import chosen_model
from .lane import DeviceLane, Lane
from .measure import Local
from .process import Pool
from .progress import Outcome, Progress, Tuning
from .remote_lane import remote_lanes
from .run import Run
from .search import DEFAULT, METASCHEDULE, OWN, Search
from .searches import searches
from .tasks import Task, extract_tasks
from .tracker import Tracker
from .weights import from_memory

if TYPE_CHECKING:
    import onnx

    from ..language.known import Composites

SPACES = ("own", "metaschedule")
BATCH = {OWN: 8, METASCHEDULE: 16, DEFAULT: 1}
BUILDERS = 0  # processes that compile, of 300 MB each; 0: one a core
_RESERVED = 0.15  # of the time budget, for the last comparisons


def tune(
    mod: IRModule,
    target: str | None = None,
    trials: int = 64,
    work_dir: str | Path = "records",
    *,
    params: Mapping[str, NDArray] | None = None,
    composites: Composites = None,
    include_simple_tasks: bool = False,
    min_ops: int = 1,
    seconds: float | None = None,
    space: str = "own",
    cost_model: Any = "auto",
    tracker: Tracker | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Tuning:
    """Search for better decisions for the kernels of a model; what is found is in `work_dir`.

    mod           partitioned, or a model that is partitioned here with params and composites
    trials        candidates of each task, the default one included
    work_dir      of the records, written at once; a run with records there goes on where they end
    min_ops       and include_simple_tasks: which kernels, as for extract_tasks
    seconds       a budget for the whole run
    space         "own": what a composite's schedule leaves open, MetaSchedule's where there is
                  none; "metaschedule": that for all
    cost_model    "auto": xgboost where installed; or "xgb", "random", "none", or MetaSchedule's own
    tracker       of RPC servers to measure on, not here; the target is theirs, with num-cores
    progress      is called after each candidate

    Build within `apply_records(work_dir)`. A candidate that crashes, hangs or computes something
    else is out. Raises InputError, TargetError, TuningError, MissingExtra and ToolError.
    """
    _check(trials, seconds, space, tracker)
    ms = meta_schedule()
    begun = time.monotonic()
    tasks = _tasks(mod, target, params, composites, include_simple_tasks, min_ops)
    folder = _folder(work_dir)
    found = searches(tasks, trials, space, seed, folder, tracker.key if tracker else "")
    lanes = _lanes(tasks, tracker)
    model = chosen_model(ms, cost_model, seed)
    with tempfile.TemporaryDirectory(prefix="selfbyoc-tune-") as scratch:
        run = Run(found, folder, Path(scratch), Builders(BUILDERS or core_count()), Pool(lanes))
        run.progress, run.begun, run.from_memory = progress, begun, from_memory(tasks)
        run.deadline = None if seconds is None else begun + seconds * (1 - _RESERVED)
        with closing(run):
            _search(ms, run, model, seed)
    if run.stop is not None:
        raise run.stop
    return Tuning(tuple(map(_outcome, found)), time.monotonic() - begun)


def _check(trials: object, seconds: Any, space: object, tracker: object) -> None:
    if not isinstance(trials, int) or trials < 1:
        raise InputError(f"trials: expected a number from 1 on, found {trials!r}")
    if seconds is not None and not seconds > 0:
        raise InputError(f"seconds: expected a time above 0, found {seconds!r}")
    if space not in SPACES:
        raise InputError(f"space: expected one of {SPACES}, found {space!r}")
    if not isinstance(tracker, Tracker | None):
        raise InputError(f"tracker: expected a selfbyoc.Tracker, found {tracker!r}")


def _tasks(
    mod: IRModule,
    target: str | None,
    params: Mapping[str, NDArray] | None,
    composites: Composites,
    simple: bool,
    min_ops: int,
) -> list[Task]:
    check_module(mod)
    target = host_target() if target is None else check_target(target)
    if not is_partitioned(mod):
        mod = partition_for_tefuse(mod, params, target, composites)
    elif composites is not None or params is not None:
        raise InputError("mod: it is partitioned already; hand params and composites to that")
    return extract_tasks(mod, target, include_simple_tasks=simple, min_ops=min_ops)


def _folder(work_dir: str | Path) -> Path:
    folder = expanded(work_dir)
    try:
        begin(folder)
    except OSError as err:
        raise TuningError(f"work_dir: {folder} cannot be written: {err}") from err
    return folder


def _lanes(tasks: Sequence[Task], tracker: Tracker | None) -> Sequence[Lane]:
    """Where candidates are measured: here, or on the servers of a tracker."""
    targets = [task.target for task in tasks]
    if tracker is not None:
        return remote_lanes(tracker, targets)
    if why := next((w for t in targets if (w := host.cannot_run(t))), ""):
        raise TuningError(f"target: {why}")
    return [DeviceLane(Local())]


def _search(ms: ModuleType, run: Run, model: onnx.ModelProto, seed: int) -> None:
    from .meta import Builder, Runner, Strategy, context
    from .sources import CostModel, MetaSpace, OwnSpace

    costs = CostModel(model)
    open_ = [s for s in run.searches if s.left]
    contexts = []
    for number, search in enumerate(open_):
        batch = BATCH[search.kind]
        source: Any = OwnSpace(run, search, costs, seed + number)
        if search.kind == METASCHEDULE:
            source = MetaSpace(run, search, model, batch, seed + number)
        contexts.append(context(search, Strategy(run, search, source, batch), seed + number))
    with _interruptible(run):
        if open_:
            run.start()
        _build_defaults(run, open_)
        if contexts:
            ms.tune.tune_tasks(
                tasks=contexts,
                task_weights=[float(s.task.weight) for s in open_],
                work_dir=str(run.folder),
                max_trials_global=1 << 30,
                num_trials_per_iter=max(BATCH.values()),
                builder=Builder(run),
                runner=Runner(run),
                database=ms.database.MemoryDatabase(),
                cost_model="none",
                measure_callbacks=[],
                task_scheduler="gradient",
            )
        for search in run.searches:
            finish(run, search)


def _build_defaults(run: Run, searches: Sequence[Search]) -> None:
    """All at once: each candidate is compared with its task's default."""
    defaults = [search.first() for search in searches]
    for default, error in zip(defaults, run.build(defaults), strict=True):
        if error:
            run.note(default, FAILED, error=error)


@contextmanager
def _interruptible(run: Run) -> Iterator[None]:
    """Ctrl-C ends the run after the candidate that is being measured; a second one ends it now."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        run.stop = run.stop or KeyboardInterrupt()
        for lane in run.lanes.workers:
            lane.stop()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _outcome(search: Search) -> Outcome:
    failed, wrong = search.useless
    record = search.chosen
    error = search.error or ("" if record is None else record.error)
    hand = search.records.get(search.default.code) if record is None else record
    times = (None, None) if hand is None else (hand.default_seconds, hand.seconds)
    return Outcome(search.task, search.done, failed, wrong, *times, record, error)
