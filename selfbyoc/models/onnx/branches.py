"""Ifs whose condition is known: the branch that is taken stands in their place. ONNX Runtime does
it too while it folds, and where one If is inside another its process ends by SIGSEGV (1.32).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.optional import extra
from .graph import Graph, is_of_onnx
from .inference import inferred

if TYPE_CHECKING:
    import onnx

_LARGEST = 4096  # elements of what a condition is computed from: shapes, sizes, rates


def resolved(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without Ifs whose condition follows from constants and known shapes; itself where
    there are none, else a new one.
    """
    while any(node.op_type == "If" for node in model.graph.node):
        known = _conditions(model)
        if not known:
            break
        model = _taken(model, known)
    return model


def _conditions(model: onnx.ModelProto) -> dict[int, bool]:
    """Of each If that has one: its place, and whether its condition holds."""
    typed = model
    with suppress(ValueError, RuntimeError):  # what cannot be inferred is not known
        typed = inferred(model)
    values = _Values(typed)
    found = {
        place: values.of(node.input[0])
        for place, node in enumerate(model.graph.node)
        if node.op_type == "If"
    }
    return {place: bool(value.all()) for place, value in found.items() if value is not None}


class _Values:
    """Small values that depend on no input, by name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = Graph(model)
        self.makers = {out: node for node in model.graph.node for out in node.output}
        self.known: dict[str, np.ndarray | None] = {}

    def of(self, name: str) -> np.ndarray | None:
        """The value, if it is known."""
        if name not in self.known:
            self.known[name] = None  # of a cycle
            self.known[name] = self._value(name)
        return self.known[name]

    def _value(self, name: str) -> np.ndarray | None:
        node = self.makers.get(name)
        if node is None or node.op_type == "Constant":
            is_small = math.prod(self.graph.shape(name) or ()) <= _LARGEST
            return self.graph.constant(name) if is_small else None
        if node.op_type in ("Shape", "Size"):
            return self._of_shape(node)
        inputs = [self.of(each) if each else None for each in node.input]
        unknown = [n for n, value in enumerate(inputs) if value is None and node.input[n]]
        if not inputs or unknown or not is_of_onnx(node) or _has_graph(node):
            return None
        return _computed(node, inputs, self.graph.opset)

    def _of_shape(self, node: onnx.NodeProto) -> np.ndarray | None:
        shape = self.graph.shape(node.input[0])
        if shape is None:
            return None
        # Shape takes a part since opset 15.
        return _computed(node, [np.empty(shape, np.int8)], self.graph.opset)


def _has_graph(node: onnx.NodeProto) -> bool:
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)


def _computed(
    node: onnx.NodeProto, inputs: list[np.ndarray | None], opset: int
) -> np.ndarray | None:
    """The first result of a node by ONNX's own implementation; None where it has none."""
    from onnx.reference import ReferenceEvaluator

    given = {n: v for n, v in zip(node.input, inputs, strict=True) if n}
    try:
        return np.asarray(ReferenceEvaluator(node, opsets={"": opset}).run(None, given)[0])
    except Exception:  # plain errors of many kinds, for what it lacks and for what does not fit
        return None


def _taken(model: onnx.ModelProto, conditions: Mapping[int, bool]) -> onnx.ModelProto:
    """A copy in which these Ifs are one of their branches."""
    done = type(model)()
    done.CopyFrom(model)
    kept: list[Any] = []
    for place, node in enumerate(done.graph.node):
        if place not in conditions:
            kept.append(node)
            continue
        name = "then_branch" if conditions[place] else "else_branch"
        (branch,) = (a.g for a in node.attribute if a.name == name)
        inner, constants = _inlined(branch, node)
        kept += inner
        done.graph.initializer.extend(constants)
    copies = [_copy(node) for node in kept]
    del done.graph.node[:]
    done.graph.node.extend(copies)
    return done


def _inlined(
    branch: onnx.GraphProto, node: onnx.NodeProto
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """The nodes and constants of a branch, with names that nothing else has."""
    branch = _copy(branch)
    defined = [out for each in branch.node for out in each.output if out]
    defined += [tensor.name for tensor in branch.initializer]
    _rename(branch, {name: f"{node.output[0]}.{name}" for name in defined})
    make = extra("onnx").helper.make_node
    ends = zip(branch.output, node.output, strict=True)
    handed = [make("Identity", [inner.name], [outer]) for inner, outer in ends if outer]
    return [*branch.node, *handed], list(branch.initializer)


def renamed(body: onnx.GraphProto, name: Callable[[str], str]) -> onnx.GraphProto:
    """A copy of a loop's body whose values have other names."""
    body = _copy(body)
    defined = [value.name for value in (*body.input, *body.initializer)]
    defined += [out for each in body.node for out in each.output if out]
    names = {each: name(each) for each in defined}
    _rename(body, names)
    for value in body.input:
        value.name = names[value.name]
    return body


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Here and in the graphs inside, which may read these values."""
    for node in graph.node:
        for field in (node.input, node.output):
            field[:] = [names.get(name, name) for name in field]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename(inner, names)
    for value in (*graph.output, *graph.initializer):
        value.name = names.get(value.name, value.name)


def _copy(body: onnx.GraphProto) -> onnx.GraphProto:
    return type(body).FromString(body.SerializeToString())
