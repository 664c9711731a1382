"""ONNX Runtime and OpenVINO, node by node, as their own profilers tell it."""

from __future__ import annotations

import bisect
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....common.optional import extra
from ..contenders.contender import Inputs
from ..contenders.runtimes import on_compiled, ort_session, ov_compiled
from ..setting import Setting
from .model import every_value
from .records import Profile, Step
from .sums import Sums, sums_of
from .timing import fastest

if TYPE_CHECKING:
    import onnx
    import openvino

MOST = 1000  # calls: ONNX Runtime writes a kilobyte for each node of each


def onnxruntime(path: str, inputs: Inputs, setting: Setting, seconds: float) -> Profile:
    """By `enable_profiling`; what a node computes is seen by running the model that its optimiser
    wrote, for it gives new names to nearly all values.
    """
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "optimised.onnx"
        changes = {
            "optimized_model_filepath": str(written), "enable_profiling": True,
            "profile_file_prefix": str(Path(folder) / "profile"), "log_severity_level": 3,
        }  # fmt: skip
        session, feed = ort_session(path, setting, changes), dict(inputs)
        calls = _calls(lambda: session.run(None, feed), seconds)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        rows, kinds = _runs(events)
        values = {name: sums_of(array) for name, array in every_value(str(written), inputs)}
        nodes = extra("onnx").load(str(written), load_external_data=False).graph.node
    times = dict(zip(kinds, fastest(rows), strict=True))
    return Profile(tuple(_nodes(nodes, times, kinds, values)), calls)


def _calls(run: Any, seconds: float) -> int:
    end, count = time.perf_counter() + seconds, 0
    while count < 3 or (time.perf_counter() < end and count < MOST):
        run()
        count += 1
    return count


def _runs(events: Sequence[Mapping[str, Any]]) -> tuple[list[list[float]], dict[str, str]]:
    """Milliseconds of each node in each call, but the first, which loads; and the nodes' ops."""
    starts = sorted(e["ts"] for e in events if e["name"] == "model_run")
    kinds: dict[str, str] = {}
    found: list[dict[str, float]] = [{} for _ in starts]
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        name = event["name"].removesuffix("_kernel_time")
        kinds.setdefault(name, event["args"].get("op_name", ""))
        run = found[bisect.bisect_right(starts, event["ts"]) - 1]
        run[name] = run.get(name, 0.0) + 1e-3 * event["dur"]
    return [[run.get(name, 0.0) for name in kinds] for run in found[1:]], kinds


def _nodes(
    nodes: Sequence[onnx.NodeProto],
    times: Mapping[str, float],
    kinds: Mapping[str, str],
    values: Mapping[str, Sums],
) -> Iterator[Step]:
    """The steps, in the order of the model that was written; those that it lacks, last."""
    left, writers, number = dict(times), dict[str, int](), 0
    for node in nodes:
        name = node.name if node.name in left else _unnamed(node, left)
        if name is None:
            continue
        outputs = [output for output in node.output if output]
        known = tuple(values[output] for output in outputs if output in values)
        reads = tuple(sorted({writers[n] for n in node.input if n in writers}))
        yield Step(name, kinds[name], left.pop(name), values=known, reads=reads)
        writers.update(dict.fromkeys(outputs, number))
        number += 1
    for name, milliseconds in left.items():
        yield Step(name, kinds[name], milliseconds)


def _unnamed(node: onnx.NodeProto, left: Mapping[str, float]) -> str | None:
    """It names a node without a name by its op and a number that the file does not have."""
    if node.name:
        return None
    return next((name for name in left if name.rpartition("_")[0] == node.op_type), None)


def openvino_(path: str, inputs: Inputs, setting: Setting, seconds: float) -> Profile:
    """By PERF_COUNT; each node of what it runs says which nodes of the model it was made of."""
    compiled = ov_compiled(path, setting, {"PERF_COUNT": True})
    built = on_compiled(compiled, inputs)
    request = built.run.__self__  # type: ignore[attr-defined]
    rows: list[dict[str, float]] = []

    def call() -> None:
        built.run()
        told = request.get_profiling_info()
        rows.append({i.node_name: 1e3 * i.real_time.total_seconds() for i in told})

    calls = _calls(call, seconds)
    ran = [name for name in rows[-1] if any(row[name] for row in rows)]
    means = fastest([[row[name] for name in ran] for row in rows[1:]])
    times = dict(zip(ran, means, strict=True))
    return Profile(tuple(_executed(compiled, times)), calls)


def _executed(compiled: openvino.CompiledModel, times: Mapping[str, float]) -> Iterator[Step]:
    """What took time, in the order of the graph; it reads through what took none."""
    sources: dict[str, set[int]] = {}
    number = 0
    for op in compiled.get_runtime_model().get_ordered_ops():
        name, info = op.get_friendly_name(), op.get_rt_info()
        given = (i.get_source_output().get_node().get_friendly_name() for i in op.inputs())
        reads = set[int]().union(*(sources.get(n, set()) for n in given))
        if name not in times:
            sources[name] = reads
            continue
        made_of = str(info["originalLayersNames"].astype(str)).split(",")
        kind = str(info["layerType"].astype(str))
        yield Step(name, kind, times[name], nodes=tuple(made_of), reads=tuple(sorted(reads)))
        sources[name], number = {number}, number + 1
