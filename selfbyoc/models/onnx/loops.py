"""Forms of Scan and Loop of few steps, how many of which is known: their steps, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...extra import extra
from .graph import Graph, attributes
from .steps import Steps

_MOST = 32  # steps; more are a model that takes long to build
_FIRST = 9  # opset; before it a Scan had an axis of batches


def _scanned(node: Any, graph: Graph) -> Sequence[Any] | None:
    given = attributes(node)
    body, count = given["body"], given["num_scan_inputs"]
    states, read = list(node.input[: len(node.input) - count]), node.input[-count:]
    axes = given.get("scan_input_axes", [0] * count)
    shapes = [graph.dims(name) for name in read]
    if graph.opset < _FIRST or _is_nested(body) or None in shapes:
        return None
    length = (shapes[0] or [])[axes[0]]
    if not length or length > _MOST:
        return None
    back = given.get("scan_input_directions", [0] * count)
    steps, kept = Steps(graph, node), list[list[str]]()
    inner = _constants(body, graph)
    for step in range(length):
        rows = [
            steps("Gather", name, np.int64(length - 1 - step if b else step), axis=axis)
            for name, axis, b in zip(read, axes, back, strict=True)
        ]
        results = _step(steps, body, [*states, *rows], inner)
        states, told = results[: len(states)], results[len(states) :]
        kept.append(told)
    outer = len(node.output) - len(states)
    axes = given.get("scan_output_axes", [0] * outer)
    back = given.get("scan_output_directions", [0] * outer)
    joined = [
        _joined(steps, [told[n] for told in kept][:: -1 if back[n] else 1], axes[n])
        for n in range(outer)
    ]
    return steps.instead(*states, *joined)


def _looped(node: Any, graph: Graph) -> Sequence[Any] | None:
    """A Loop that goes on until it has been through so many steps."""
    body, (count, condition, *states) = attributes(node)["body"], node.input
    length = graph.constant(count) if count else None
    goes_on = graph.constant(condition) if condition else np.asarray(True)
    if length is None or goes_on is None or not goes_on.all() or not _passes_on(body):
        return None
    if not 0 < int(length.reshape(-1)[0]) <= _MOST or _is_nested(body):
        return None
    steps, kept, inner = Steps(graph, node), list[list[str]](), _constants(body, graph)
    for step in range(int(length.reshape(-1)[0])):
        number, true = steps.constant(np.int64(step)), steps.constant(np.asarray(True))
        results = _step(steps, body, [number, true, *states], inner)[1:]
        states, told = results[: len(states)], results[len(states) :]
        kept.append(told)
    joined = [_joined(steps, list(parts), 0) for parts in zip(*kept, strict=True)]
    return steps.instead(*states, *joined)


def _passes_on(body: Any) -> bool:
    """Whether a Loop's condition is what it was."""
    name, given = body.output[0].name, body.input[1].name
    same = {n.output[0]: n.input[0] for n in body.node if n.op_type == "Identity"}
    while name in same:
        name = same[name]
    return bool(name == given)


def _is_nested(body: Any) -> bool:
    return any(a.HasField("g") or a.graphs for node in body.node for a in node.attribute)


def _constants(body: Any, graph: Graph) -> dict[str, str]:
    """The body's constants as those of the graph: old name -> new name."""
    arrays = extra("onnx").numpy_helper.to_array
    return {t.name: graph.add(arrays(t)) for t in body.initializer}


def _step(steps: Steps, body: Any, inputs: Sequence[str], inner: Mapping[str, str]) -> list[str]:
    """The body's nodes once more, on these values; what it returns."""
    names = {**inner, **{v.name: x for v, x in zip(body.input, inputs, strict=True)}}
    for node in body.node:
        made = type(node)()
        made.CopyFrom(node)
        made.input[:] = [names.get(name, name) for name in node.input]
        for name in filter(None, node.output):
            names[name] = steps.graph.free_name(f"{steps.node.name or 'step'}.{name}")
        made.output[:] = [names.get(name, "") for name in node.output]
        steps.nodes.append(made)
    return [names.get(value.name, value.name) for value in body.output]


def _joined(steps: Steps, parts: Sequence[str], axis: int) -> str:
    rows = [steps.over("Unsqueeze", part, [axis]) for part in parts]
    return steps("Concat", *rows, axis=axis)


FORMS = {"Loop": _looped, "Scan": _scanned}
