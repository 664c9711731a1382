"""Ops that TVM's ONNX frontend does not have, as the ops by which ONNX itself defines them:
Attention, RotaryEmbedding, Swish, ... The package onnx does it, the one of Relay (1.18) not yet.
"""

from __future__ import annotations

import inspect
from collections.abc import Set
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from ...common.optional import extra
from .graph import is_of_onnx, nodes, opset_of
from .inference import inferred

if TYPE_CHECKING:
    import onnx

# Of this name the frontends have another op than ONNX's: Microsoft's.
_OTHERS = frozenset({"Attention"})
_PREVIEW = "ai.onnx.preview"  # ops that onnx may yet change
_DEPTH = 4  # of ops that are defined by ops that are defined by others


def expanded(model: onnx.ModelProto, known: Set[str]) -> onnx.ModelProto:
    """The model without ops that are not `known`, where ONNX defines them by others; itself where
    there are none.

    An op whose further results are used is taken apart, too, where only its first one is read; so
    is one whose sizes are data.
    """
    for _ in range(_DEPTH):
        taken = _once(model, known)
        if taken is None:
            break
        model = taken
    return model


def _once(model: onnx.ModelProto, known: Set[str]) -> onnx.ModelProto | None:
    """With what takes these ops' place, which may be ops of that kind; None where nothing does."""
    read = {name for node in nodes(model.graph) for name in node.input}
    read |= {value.name for value in model.graph.output}
    constants = {t.name for t in model.graph.initializer}
    constants |= {n.output[0] for n in nodes(model.graph) if n.op_type == "Constant"}
    wanted = {
        (node.domain, node.op_type)
        for node in nodes(model.graph)
        if _is_asked_for(node, known, read, constants) and _is_function(node, model)
    }
    inline = import_module("onnx.inliner").inline_selected_functions if wanted else None
    if inline is None or "inline_schema_functions" not in inspect.signature(inline).parameters:
        return None
    known_inputs = {value.name for value in model.graph.input}
    with suppress(ValueError, RuntimeError):  # of what has no type: the frontend says what it lacks
        typed = inferred(_typed(model, known_inputs))
        typed.graph.value_info.append(_nothing())
        done = inline(typed, sorted(wanted), inline_schema_functions=True)
        for value in [v for v in done.graph.input if v.name not in known_inputs]:
            done.graph.input.remove(value)
        for value in [v for v in done.graph.value_info if not v.name]:
            done.graph.value_info.remove(value)
        return done
    return None


def _nothing() -> onnx.ValueInfoProto:
    """An input that is left out: the inliner asks for its type, too."""
    onnx = extra("onnx")
    return onnx.helper.make_tensor_value_info("", onnx.TensorProto.FLOAT, None)


def _typed(model: onnx.ModelProto, inputs: Set[str]) -> onnx.ModelProto:
    """The model with its constants as inputs that have a value: the inliner wants their types."""
    done, make = type(model)(), extra("onnx").helper.make_tensor_value_info
    done.CopyFrom(model)
    done.graph.input.extend(
        make(t.name, t.data_type, list(t.dims))
        for t in done.graph.initializer
        if t.name not in inputs
    )
    for node in nodes(done.graph):
        if _is_function(node, model):
            _with_defaults(node, _schema(node, model))
    return done


def _with_defaults(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> None:
    """The inliner leaves attributes away that a function reads and a node does not give."""
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _is_asked_for(
    node: onnx.NodeProto, known: Set[str], read: Set[str], constants: Set[str]
) -> bool:
    if not is_of_onnx(node):
        return bool(node.domain == _PREVIEW)
    return node.op_type not in known - _OTHERS or _needs_more(node, read, constants)


def _needs_more(node: onnx.NodeProto, read: Set[str], constants: Set[str]) -> bool:
    """Whether the frontends have an op, and not all of it."""
    if node.op_type == "AffineGrid":
        return node.input[1] not in constants
    return node.op_type == "LayerNormalization" and any(name in read for name in node.output[1:])


def _is_function(node: onnx.NodeProto, model: onnx.ModelProto) -> bool:
    schema = _schema(node, model)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def _schema(node: onnx.NodeProto, model: onnx.ModelProto) -> onnx.defs.OpSchema | None:
    """What onnx says of an op; None of one that it does not know."""
    defs, versions = extra("onnx").defs, {e.domain: e.version for e in model.opset_import}
    version = opset_of(model) if is_of_onnx(node) else versions.get(node.domain, 1)
    domain = "" if is_of_onnx(node) else node.domain
    if not defs.has(node.op_type, version, domain):
        return None
    return defs.get_schema(node.op_type, version, domain)
