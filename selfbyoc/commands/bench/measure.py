"""One workload measured: everybody builds it, then their windows take turns."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.optional import extra
from ...runtime.timing import WINDOW, Window
from .checking import checked, expectation
from .inputs import inputs_of
from .others import Watch
from .process import Failed, Process
from .records import Result, Row
from .setting import Setting
from .worker import SLOW
from .workload import Workload, counted

if TYPE_CHECKING:
    import onnx

LARGE = 3 << 29  # bytes of weights


@dataclass(frozen=True)
class Method:
    """How it is timed. Nobody else should compute within `exclusive`.

    In its turn a contender runs untimed for `warm` seconds, then for some windows. A tenth of a
    second is what it takes until the threads of the one before sleep (all pools spin for a while),
    and until OpenVINO's own are where they stay: with 5 ms it took 0.37 ms, not 0.21.
    Of several `builds` the best counts, for ours and for the peers: where memory happens to lie
    makes some of them differ by half from process to process.
    """

    turns: int = 3
    windows: int = 10  # of each turn
    window: float = WINDOW
    warm: float = 0.1
    builds: int = 1
    limit: float = 600.0  # seconds to build, import and run once
    exclusive: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Ready:
    """A contender that has built the workload."""

    process: Process
    outputs: Sequence[np.ndarray]
    slow: bool
    result: Result


def measure(
    workload: Workload, processes: Mapping[str, Process], setting: Setting, method: Method,
    says: Callable[[str], None] = lambda text: None,
) -> Row:  # fmt: skip
    """Build the workload in each process, check the results, and time them against each other."""
    model = workload.model()
    work, inputs = counted(model), inputs_of(model)
    results: dict[str, Result] = {}
    shares: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = workload.file or saved(model, Path(folder))
        expected = expectation(workload, model, path, inputs, work.terms, method.limit)
        for _ in range(method.builds):
            ready, failed = build_all(processes, (path, inputs, setting), method, says)
            if workload.truth in ready:
                expected = replace(expected, outputs=ready[workload.truth].outputs)
            says("time them in turns")
            times, others = in_turns(ready, method)
            shares.append(others)
            found = {n: checked(r, ready[n].outputs, expected) for n, r in times.items()}
            for name, result in {**failed, **found}.items():
                results[name] = _better(results.get(name), result)
    ordered = {name: results[name] for name in processes}
    return Row(
        workload.name, workload.group, work.flops, work.bytes, ordered, max(shares),
        workload.key, expected.unknown, workload.length, workload.floats,
    )  # fmt: skip


def saved(model: onnx.ModelProto, folder: Path) -> str:
    """A file for all; a file of Protobuf holds 2 GB, what is larger has its weights beside it."""
    path = str(folder / "model.onnx")
    large = sum(len(t.raw_data) for t in model.graph.initializer) > LARGE
    extra("onnx").save(model, path, save_as_external_data=large)
    return path


def build_all(
    processes: Mapping[str, Process],
    args: Sequence[object],
    method: Method,
    says: Callable[[str], None],
) -> tuple[dict[str, Ready], dict[str, Result]]:
    """Those that built what `args` say, and those that did not."""
    ready, failed = {}, {}
    for name, process in processes.items():
        says(f"build with {name}")
        try:
            answer = process.ask("built", *args, limit=method.limit)
        except Failed as err:
            failed[name] = Result(skipped=str(err))
            continue
        outputs, call, seconds, note, file_bytes = answer
        result = Result(build_seconds=seconds, note=note, file_bytes=file_bytes)
        ready[name] = Ready(process, outputs, call >= SLOW, result)
    return ready, failed


def in_turns(ready: Mapping[str, Ready], method: Method) -> tuple[dict[str, Result], float]:
    """Windows in turns; a slow one is called once, for it would keep the others waiting.

    -> the results, and the share of the cores' time that went to nobody of these.
    """
    windows: dict[str, list[Window]] = {name: [] for name in ready}
    found: dict[str, Result] = {}
    pids = [c.process.pid for c in ready.values() if c.process.pid is not None]
    with method.exclusive():
        watch = Watch(pids)
        for turn in range(method.turns):
            for name, contender in ready.items():
                if name in found or (turn and contender.slow):
                    continue
                asked = (1, 0.0) if contender.slow else (method.windows, method.warm)
                try:
                    windows[name] += contender.process.ask("windows", method.window, *asked)
                except Failed as err:
                    found[name] = Result(skipped=str(err))
        others = watch.share()
    for name, contender in ready.items():
        if name not in found:
            contender.process.ask("dropped")
            found[name] = timed(contender.result, windows[name])
    return found, others


def timed(result: Result, windows: Sequence[Window]) -> Result:
    """With the median over the faster half of the windows: what disturbs one only adds to it.

    How often a thread was pushed off its core says nothing here: OpenVINO's threads do it to each
    other, hundreds of times in 20 ms.
    """
    calls = sorted(1e3 * w.seconds / w.calls for w in windows)
    return replace(
        result,
        milliseconds=statistics.median(calls[: (len(calls) + 1) // 2]),
        lowest=calls[0],
        median=statistics.median(calls),
        windows=len(calls),
    )


def _better(one: Result | None, other: Result) -> Result:
    """The faster build; one that failed only where no build came through, a wrong one always."""
    if one is None or one.skipped or other.wrong:
        return other
    if other.skipped or one.wrong:
        return one
    return min(one, other, key=lambda r: r.milliseconds)
