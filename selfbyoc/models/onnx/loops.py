"""Forms of loops of few steps, how many of which is known: their steps, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...common.optional import extra
from .graph import Graph, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx

MOST = 32  # steps; more are a model that takes long to build


def _looped(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A Loop that goes on until it has been through so many steps."""
    body, (count, condition, *states) = attributes(node)["body"], node.input
    length = graph.constant(count) if count else None
    goes_on = graph.constant(condition) if condition else np.asarray(True)
    if length is None or goes_on is None or not goes_on.all() or not passes_on(body):
        return None
    if not 0 < int(length.reshape(-1)[0]) <= MOST or is_nested(body):
        return None
    steps, kept, inner = Steps(graph, node), list[list[str]](), constants_of(body, graph)
    for n in range(int(length.reshape(-1)[0])):
        number, true = steps.constant(np.int64(n)), steps.constant(np.asarray(True))
        results = step(steps, body, [number, true, *states], inner)[1:]
        states, told = results[: len(states)], results[len(states) :]
        kept.append(told)
    outputs = [joined(steps, list(parts), 0) for parts in zip(*kept, strict=True)]
    return steps.instead(*states, *outputs)


def passes_on(body: onnx.GraphProto) -> bool:
    """Whether a Loop's condition is what it was."""
    name, given = body.output[0].name, body.input[1].name
    same = {n.output[0]: n.input[0] for n in body.node if n.op_type == "Identity"}
    while name in same:
        name = same[name]
    return bool(name == given)


def is_nested(body: onnx.GraphProto) -> bool:
    """Whether there are branches or loops in it."""
    return any(a.HasField("g") or a.graphs for node in body.node for a in node.attribute)


def constants_of(body: onnx.GraphProto, graph: Graph) -> dict[str, str]:
    """The body's constants as those of the graph: old name -> new name."""
    arrays = extra("onnx").numpy_helper.to_array
    return {t.name: graph.add(arrays(t)) for t in body.initializer}


def step(
    steps: Steps, body: onnx.GraphProto, inputs: Sequence[str], inner: Mapping[str, str]
) -> list[str]:
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


def joined(steps: Steps, parts: Sequence[str], axis: int) -> str:
    """Values of one shape, one after another along a new axis."""
    rows = [steps.over("Unsqueeze", part, [axis]) for part in parts]
    return steps("Concat", *rows, axis=axis)


FORMS = {"Loop": _looped}
