"""A connected part of a user's model, as a model."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from ....common.optional import extra
from .mutant import Range
from .protos import constant, reads, tidy, typed
from .source import Source

if TYPE_CHECKING:
    import onnx

_LEAST, _MOST = 3, 30  # nodes
_IMAGE = (5, 9, 14, 16, 17, 24, 28, 33)  # pixels of the longest side that a large one gets
_LARGE = 40
_NEWEST = 10  # IR version


def cut(source: Source, rng: Random) -> tuple[onnx.ModelProto, dict[str, Range], str] | None:
    """A part of some 3 to 30 nodes, or a small model as a whole; what its inputs that are integers
    may be; and which it is. None where ONNX's checks refuse it.
    """
    members = _members(source, rng)
    model, ranges = _model(source, members)
    small = fitted(model, rng)
    if small is None:
        return None
    return small, ranges, f"{source.name} nodes {min(members)} to {max(members)}"


def _members(source: Source, rng: Random) -> set[int]:
    usable = sorted(source.usable)
    if len(usable) <= _MOST and rng.random() < 0.3:
        return set(usable)
    wanted = round(_LEAST * (_MOST / _LEAST) ** rng.random())
    members = {rng.choice(usable)}
    while len(members) < wanted:
        near = sorted(_near(source, members) - members)
        if not near:
            break
        members.add(rng.choice(near))
    return members


def _near(source: Source, members: Iterable[int]) -> set[int]:
    """The usable nodes that read what these compute, or compute what they read."""
    found: set[int] = set()
    for n in members:
        node = source.model.graph.node[n]
        found.update(source.producers[name] for name in reads(node) if name in source.producers)
        found.update(r for name in node.output for r in source.readers.get(name, []))
    return found & source.usable


def _with_constants(source: Source, members: set[int]) -> list[int]:
    """And the nodes that compute constants for these, in order."""
    found, left = set(members), list(members)
    while left:
        for name in reads(source.model.graph.node[left.pop()]):
            n = source.producers.get(name)
            if n is not None and name in source.fixed and n not in found:
                found.add(n)
                left.append(n)
    return sorted(found)


def _model(source: Source, members: set[int]) -> tuple[onnx.ModelProto, dict[str, Range]]:
    onnx, whole = extra("onnx"), source.model
    model = onnx.ModelProto(ir_version=min(whole.ir_version, _NEWEST))
    model.opset_import.extend(whole.opset_import)
    model.functions.extend(whole.functions)
    graph = model.graph
    graph.name = "cut"
    chosen = [whole.graph.node[n] for n in _with_constants(source, members)]
    for node in chosen:
        array = constant(node) if node.op_type == "Constant" else None
        if array is None:
            graph.node.add().CopyFrom(node)
        else:
            graph.initializer.append(onnx.numpy_helper.from_array(array, node.output[0]))
    made = {name for node in chosen for name in node.output}
    read = {name for node in chosen for name in reads(node)}
    ranges = {}
    for name in sorted(read - made):
        if name in source.constants:
            graph.initializer.add().CopyFrom(source.constants[name])
        elif name in source.values:
            graph.initializer.append(onnx.numpy_helper.from_array(source.values[name], name))
        elif name in source.types:
            shape, dtype = source.types[name]
            graph.input.append(onnx.helper.make_tensor_value_info(name, dtype, shape))
            ranges.update({name: source.ranges[name]} if name in source.ranges else {})
    for node in chosen:
        for name in node.output:
            if name in source.types and name not in read and name not in source.fixed:
                graph.output.add(name=name)
    tidy(model)
    return model, ranges


def fitted(model: onnx.ModelProto, rng: Random) -> onnx.ModelProto | None:
    """With its types, and images of few pixels; as it is where that does not fit."""
    sizes = [s for v in model.graph.input for s in _pixels(v)]
    if sizes and max(sizes) > _LARGE:
        small = type(model)()
        small.CopyFrom(model)
        scale(small.graph, rng.choice(_IMAGE) / max(sizes), rng.choice((1.0, 1.0, 1.3)))
        done = typed(small)
        if done is not None:
            return done
    return typed(model)


def _pixels(value: onnx.ValueInfoProto) -> list[int]:
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value for d in dims[2:]] if len(dims) > 3 else []


def scale(graph: onnx.GraphProto, ratio: float, more: float = 1.0) -> None:
    """Other sizes of images; `more` of the last axis."""
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        for axis in range(2, len(dims) if len(dims) > 3 else 0):
            part = ratio * more if axis == len(dims) - 1 else ratio
            if dims[axis].dim_value > 1:
                dims[axis].dim_value = max(1, int(np.ceil(dims[axis].dim_value * part)))
