"""Models with values of float16. ONNX Runtime has few kernels of it: the model that it writes casts
to float32 around the others, weights too, and no longer rounds where the one that it read does.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from ...common.optional import extra
from .computing import computed
from .graph import nodes

if TYPE_CHECKING:
    import onnx


def has_halves(model: onnx.ModelProto) -> bool:
    """Whether a value is of float16."""
    half, graph = extra("onnx").TensorProto.FLOAT16, model.graph
    values = (*graph.input, *graph.output, *graph.value_info)
    typed = any(value.type.tensor_type.elem_type == half for value in values)
    casts = (node for node in nodes(graph) if node.op_type == "Cast")
    cast = any(a.i == half for node in casts for a in node.attribute if a.name == "to")
    return typed or cast or any(tensor.data_type == half for tensor in graph.initializer)


def computed_in_order(model: onnx.ModelProto) -> onnx.ModelProto:
    """What ONNX Runtime would write, in the model's own dtypes: nodes after those that they read,
    as some converters do not leave them, without what follows from constants.
    """
    maker = {name: n for n, node in enumerate(model.graph.node) for name in node.output if name}
    before = [{maker[name] for name in _read(node) if name in maker} for node in model.graph.node]
    if any(max(found, default=-1) >= n for n, found in enumerate(before)):
        model = _sorted(model, before)
    return computed(model)


def _read(node: onnx.NodeProto) -> set[str]:
    """What a node reads, in branches and loops inside of it, too."""
    inner = (i for a in node.attribute for g in (a.g, *a.graphs) for n in nodes(g) for i in n.input)
    return {*node.input, *inner}


def _sorted(model: onnx.ModelProto, before: list[set[int]]) -> onnx.ModelProto:
    try:
        order = list(TopologicalSorter(dict(enumerate(before))).static_order())
    except CycleError:
        return model  # whoever reads it says so
    done = type(model)()
    done.CopyFrom(model)
    found = [type(node).FromString(node.SerializeToString()) for node in model.graph.node]
    del done.graph.node[:]
    done.graph.node.extend(found[n] for n in order)
    return done
