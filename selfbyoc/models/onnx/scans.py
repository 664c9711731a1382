"""Forms of Scan: its steps one by one, where they are few; else a Loop, of which TVM's frontend of
Relax gets a function (models/relax/loops.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.optional import extra
from .branches import renamed
from .checks import IS_RELAY
from .graph import Graph, attributes
from .loops import MOST, constants_of, is_nested, joined, step
from .steps import Steps

if TYPE_CHECKING:
    import onnx


_WITHOUT_BATCH = 9  # opset; before it a Scan had an axis of batches, and lengths of each
_SLICES_TAKE_STEPS = 10


@dataclass(frozen=True)
class _Scan:
    """What a Scan reads and gives: axes and whether it goes backwards, of each input and output."""

    body: Any
    states: Sequence[str]
    read: Sequence[str]
    axes: Sequence[int]
    back: Sequence[int]
    axes_out: Sequence[int]
    back_out: Sequence[int]
    length: int | None  # None: data decide


def _scanned(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    if graph.opset < _WITHOUT_BATCH:
        return _of_batches(node, graph)
    scan = _read(node, graph)
    if scan is None:
        return None
    if scan.length and scan.length <= MOST and not is_nested(scan.body):
        steps = Steps(graph, node)
        return steps.instead(*_unrolled(steps, scan))
    return None if IS_RELAY else _as_loop(Steps(graph, node), scan)


def _read(node: onnx.NodeProto, graph: Graph) -> _Scan | None:
    """None where not even the number of axes is known."""
    given = attributes(node)
    count = given["num_scan_inputs"]
    states, read = node.input[: len(node.input) - count], node.input[-count:]
    outer = len(node.output) - len(states)
    dims = [graph.dims(name) for name in read]
    axes = given.get("scan_input_axes", [0] * count)
    if any(each is None for each in dims):
        return None
    lengths = {(each or [])[axis] for each, axis in zip(dims, axes, strict=True)} - {None}
    return _Scan(
        given["body"], states, read, axes, given.get("scan_input_directions", [0] * count),
        given.get("scan_output_axes", [0] * outer),
        given.get("scan_output_directions", [0] * outer),
        lengths.pop() if lengths else None,
    )  # fmt: skip


def _unrolled(steps: Steps, scan: _Scan) -> list[str]:
    """The final states and the outputs, of as many copies of the body as there are steps."""
    inner, states, told = constants_of(scan.body, steps.graph), list(scan.states), list[list[str]]()
    length = scan.length or 0
    for n in range(length):
        rows = [
            steps("Gather", name, np.int64(length - 1 - n if back else n), axis=axis)
            for name, axis, back in zip(scan.read, scan.axes, scan.back, strict=True)
        ]
        results = step(steps, scan.body, [*states, *rows], inner)
        states = results[: len(states)]
        told.append(results[len(states) :])
    parts = zip(zip(*told, strict=True), scan.axes_out, scan.back_out, strict=True)
    outputs = [joined(steps, rows[:: -1 if back else 1], axis) for rows, axis, back in parts]
    return [*states, *outputs]


def _of_batches(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Opset 8: each element of the batch by itself, of one length."""
    given, (lengths, *inputs) = attributes(node), node.input
    count = given["num_scan_inputs"]
    states, read = inputs[: len(inputs) - count], inputs[-count:]
    batch, length = (*(graph.dims(read[0]) or ()), None, None)[:2]
    known = graph.constant(lengths) if lengths else np.asarray(length)
    if not batch or not length or batch * length > MOST or is_nested(given["body"]):
        return None
    if known is None or (known != length).any():
        return None
    steps, outer = Steps(graph, node), len(node.output) - len(states)
    ways = given.get("directions", [0] * count)
    results = []
    for n in range(batch):
        of_states, of_read = (
            [steps("Gather", name, np.int64(n), axis=0) for name in side] for side in (states, read)
        )
        zeros = [0] * outer
        one = _Scan(given["body"], of_states, of_read, [0] * count, ways, zeros, zeros, length)
        results.append(_unrolled(steps, one))
    return steps.instead(*(joined(steps, parts, 0) for parts in zip(*results, strict=True)))


def _as_loop(steps: Steps, scan: _Scan) -> Sequence[onnx.NodeProto] | None:
    """A Loop whose steps pick their rows out of what the Scan reads."""
    graph, length = steps.graph, scan.length
    ranks = [graph.rank(name) for name in steps.node.output[len(scan.states) :]]
    if None in ranks or graph.opset < _SLICES_TAKE_STEPS:
        return None
    count = steps.constant(np.int64(length)) if length is not None else _counted(steps, scan)
    body = _loop_body(steps, scan, count)
    outputs = steps.results(len(steps.node.output), "Loop", count, "", *scan.states, body=body)
    done = outputs[: len(scan.states)]
    told = zip(outputs[len(done) :], scan.axes_out, scan.back_out, ranks, strict=True)
    for name, axis, back, rank in told:
        if back:
            name = steps("Slice", name, [-1], [np.iinfo(np.int64).min], [0], [-1])
        order = [*range(1, rank or 1)]
        order.insert(axis % (rank or 1), 0)
        done.append(name if order[0] == 0 else steps("Transpose", name, perm=order))
    return steps.instead(*done)


def _counted(steps: Steps, scan: _Scan) -> str:
    """How long the first input is, which data decide."""
    return steps("Gather", steps("Shape", scan.read[0]), np.int64(scan.axes[0]))


def _loop_body(steps: Steps, scan: _Scan, count: str) -> onnx.GraphProto:
    """The Scan's body, which takes the number of its step instead of its rows."""
    onnx, graph = extra("onnx"), steps.graph
    body, helper = renamed(scan.body, graph.free_name), onnx.helper
    names = ("number", "goes_on", "rest", "at", "behind")
    number, goes_on, rest, at, behind = (graph.free_name(f"scan.{name}") for name in names)
    picks = [
        helper.make_node("Sub", [count, steps.constant(1)], [behind]),
        helper.make_node("Sub", [behind, number], [at]),
        helper.make_node("Identity", [goes_on], [rest]),
    ]
    rows = [value.name for value in body.input[len(scan.states) :]]
    for name, row, axis, back in zip(scan.read, rows, scan.axes, scan.back, strict=True):
        place = at if back else number
        picks.append(helper.make_node("Gather", [name, place], [row], axis=axis))
    make, types = helper.make_tensor_value_info, onnx.TensorProto
    ends = [make(number, types.INT64, []), make(goes_on, types.BOOL, [])]
    inputs = [*ends, *body.input[: len(scan.states)]]
    outputs = [make(rest, types.BOOL, []), *body.output]
    nodes = [*picks, *body.node]
    return helper.make_graph(nodes, body.name or "scan", inputs, outputs, body.initializer)


FORMS = {"Scan": _scanned}
