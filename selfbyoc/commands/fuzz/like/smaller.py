"""Mutants that are one step smaller: changes undone, fewer outputs and nodes, smaller extents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ....common.optional import extra
from ....models.onnx.graph import Graph
from .mutant import Mutant
from .mutations import mutated, redirect
from .protos import replace_all, tidy, typed
from .sizes import everywhere, extents

if TYPE_CHECKING:
    import onnx


def smaller(mutant: Mutant) -> Iterator[Mutant]:
    """The largest steps first; all are taken by ONNX's checks."""
    if mutant.cut:
        yield from _undone(mutant)
    yield from _as_mutants(mutant, _outputs(mutant.proto))
    yield from _as_mutants(mutant, _without_nodes(mutant.proto))
    yield from _as_mutants(mutant, _plain_attributes(mutant.proto))
    yield from _as_mutants(mutant, _extents(mutant.proto))
    if mutant.target:
        yield replace(mutant, target="")


def _as_mutants(mutant: Mutant, models: Iterator[onnx.ModelProto]) -> Iterator[Mutant]:
    for model in models:
        tidy(model)
        done = typed(model)
        if done is not None:
            yield replace(mutant, model=done.SerializeToString(), cut=b"", mutations=())


def _undone(mutant: Mutant) -> Iterator[Mutant]:
    """Without one of the changes; the others are made again, where they can be."""
    for left_out in reversed(range(len(mutant.mutations))):
        model = extra("onnx").load_from_string(mutant.cut)
        kept, grown = [], [mutant.grown[0]]
        for n, (kind, seed) in enumerate(mutant.mutations):
            new = mutated(model, kind, seed) if n != left_out else None
            if new is not None and new.model is not None:
                model = new.model
                kept.append((kind, seed))
                grown.append(new.told)
        yield replace(
            mutant, model=model.SerializeToString(), mutations=tuple(kept), grown=tuple(grown)
        )


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = type(model)()
    copy.CopyFrom(model)
    return copy


def _returning(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    copy = _copy(model)
    del copy.graph.output[:]
    for name in dict.fromkeys(names):
        copy.graph.output.add(name=name)
    return copy


def _outputs(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """One output of several; an output that is computed earlier."""
    names = [value.name for value in model.graph.output]
    producers = {name: node for node in model.graph.node for name in node.output}
    if len(names) > 1:
        yield from (_returning(model, [name]) for name in names)
        yield from (_returning(model, [m for m in names if m != name]) for name in names)
    for n, name in enumerate(names):
        for before in producers[name].input:
            if before in producers:
                yield _returning(model, [*names[:n], before, *names[n + 1 :]])


def _without_nodes(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """A node's value as an input, or as one of the node's own inputs."""
    graph = Graph(model)
    returned = {value.name for value in model.graph.output}
    make = extra("onnx").helper.make_tensor_value_info
    for n in reversed(range(len(model.graph.node))):
        node = model.graph.node[n]
        for name in node.output:
            shape, dtype = graph.shape(name), graph.dtype_number(name)
            if name in returned or not name or not shape or not dtype:
                continue
            for before in node.input:
                if before and (graph.shape(before), graph.dtype_number(before)) == (shape, dtype):
                    copy = _copy(model)
                    redirect(copy.graph, name, before)
                    yield copy
            if dtype == 1 and len(node.output) == 1:
                copy = _copy(model)
                replace_all(copy.graph.node, [m for k, m in enumerate(copy.graph.node) if k != n])
                copy.graph.input.append(make(name, dtype, shape))
                yield copy


def _plain_attributes(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    for n, node in enumerate(model.graph.node):
        for k in range(len(node.attribute)):
            copy = _copy(model)
            del copy.graph.node[n].attribute[k]
            yield copy


def _extents(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    for old in reversed(extents(model.graph)):
        for new in sorted({1, 2, old // 2, old - 1}):
            if 0 < new < old:
                copy = _copy(model)
                everywhere(copy.graph, old, new)
                yield copy
