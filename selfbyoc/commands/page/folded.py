"""What the drawing shows as one node: an op, a run of shape ops, or a whole kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...graph import OpCall, OpGraph
from ...partition.report import Record, Report

# What moves or renames elements at most; runs of them outside of kernels say little one by one.
SHAPES = {
    "reshape", "transpose", "broadcast_to", "expand_dims", "squeeze", "flatten", "nn.batch_flatten",
    "cast", "copy", "layout_transform", "shape_of", "shape_to_tensor", "tensor_to_shape",
    "dyn.reshape",
}  # fmt: skip


@dataclass(frozen=True)
class Node:
    """One box of the drawing; its last op gives it its name."""

    calls: tuple[OpCall, ...]
    kernel: Record | None = None  # where it stands for all of a kernel

    @property
    def name(self) -> str:
        """What edges call it."""
        return self.calls[-1].name


def nodes(graph: OpGraph, report: Report, by_kernel: bool) -> list[Node]:
    """All nodes in topological order of their last ops; those of kernels op by op, or as one."""
    shown = {call.name: call for call in graph.ops if call.sources}
    inside = {name for record in report.matched for name in record.ops}
    found = [Node(tuple(run)) for run in _runs(graph, shown, inside)]
    found += [Node((shown[name],)) for name in shown if name in inside and not by_kernel]
    if by_kernel:
        found += [
            Node(tuple(shown[n] for n in shown if n in r.ops), r)
            for r in report.matched
            if not shown.keys().isdisjoint(r.ops)
        ]
    order = {name: position for position, name in enumerate(shown)}
    return sorted(found, key=lambda node: order[node.name])


def _runs(
    graph: OpGraph, shown: Mapping[str, OpCall], inside: set[str]
) -> Iterator[Sequence[OpCall]]:
    """The ops outside of kernels; with each shape op those before it that nobody else reads. What
    depends on no input of the model counts as one.
    """
    fixed = _without_inputs(graph)
    folds = {n for n, c in shown.items() if n not in inside and (c.kind in SHAPES or n in fixed)}
    readers: dict[str, list[str]] = {}
    for name, call in shown.items():
        for source in sources(graph, call):
            readers.setdefault(source, []).append(name)
    for value in graph.outputs:
        if (producer := graph.producer(value)) is not None:
            readers.setdefault(producer.name, []).append("")  # the model's caller
    into: dict[str, str] = {}  # op -> the last op of its run
    for name in reversed(list(shown)):
        reader = readers.get(name, [""])
        joins = name in folds and len(reader) == 1 and reader[0] in folds
        into[name] = into[reader[0]] if joins else name
    runs: dict[str, list[OpCall]] = {}
    for name, call in shown.items():
        if name not in inside:
            runs.setdefault(into[name], []).append(call)
    yield from runs.values()


def _without_inputs(graph: OpGraph) -> set[str]:
    """Ops that compute the same whatever the model is given."""
    moving = set(graph.inputs)
    found = set()
    for call in graph.ops:
        if any(value in moving for value in call.inputs):
            moving.update(call.outputs)
        else:
            found.add(call.name)
    return found


def sources(graph: OpGraph, call: OpCall) -> Iterator[str]:
    """The ops and inputs (`in x`) that an op reads; through the ops that canonicalising made up."""
    for value in dict.fromkeys(call.inputs):
        producer = graph.producer(value)
        if producer is None:
            if any(value is v for v in graph.inputs):
                yield f"in {value.name}"
        elif producer.sources:
            yield producer.name
        else:
            yield from sources(graph, producer)
