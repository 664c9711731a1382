"""Ops that TVM's ONNX frontend does not have, as the ops by which ONNX itself defines them:
Attention, RotaryEmbedding, Swish, ... The package onnx does it, the one of Relay (1.18) not yet.
"""

from __future__ import annotations

import inspect
from collections.abc import Set
from contextlib import suppress
from importlib import import_module
from typing import Any

from ...extra import extra
from .graph import is_of_onnx, nodes

# Of this name the frontends have another op than ONNX's: Microsoft's.
_OTHERS = frozenset({"Attention"})


def expanded(model: Any, known: Set[str]) -> Any:
    """The model without ops that are not `known`, where ONNX defines them by others; itself where
    there are none.

    An op whose further results are used is taken apart, too, where only its first one is read.
    """
    onnx = extra("onnx")
    read = {name for node in nodes(model.graph) for name in node.input}
    read |= {value.name for value in model.graph.output}
    wanted = {
        node.op_type
        for node in nodes(model.graph)
        if is_of_onnx(node)
        and (node.op_type not in known - _OTHERS or _needs_more(node, read))
        and _is_function(node.op_type, model)
    }
    inline = import_module("onnx.inliner").inline_selected_functions if wanted else None
    if inline is None or "inline_schema_functions" not in inspect.signature(inline).parameters:
        return model
    known_inputs = {value.name for value in model.graph.input}
    with suppress(ValueError, RuntimeError):  # of what has no type: the frontend says what it lacks
        typed = onnx.shape_inference.infer_shapes(_typed(model, known_inputs))
        names = [("", op) for op in sorted(wanted)]
        done = inline(typed, names, inline_schema_functions=True)
        for value in [v for v in done.graph.input if v.name not in known_inputs]:
            done.graph.input.remove(value)
        return done
    return model


def _typed(model: Any, inputs: Set[str]) -> Any:
    """The model with its constants as inputs that have a value: the inliner wants their types."""
    done, make = type(model)(), extra("onnx").helper.make_tensor_value_info
    done.CopyFrom(model)
    done.graph.input.extend(
        make(t.name, t.data_type, list(t.dims))
        for t in done.graph.initializer
        if t.name not in inputs
    )
    return done


def _needs_more(node: Any, read: Set[str]) -> bool:
    return node.op_type == "LayerNormalization" and any(name in read for name in node.output[1:])


def _is_function(op: str, model: Any) -> bool:
    onnx = extra("onnx")
    opset = max((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), default=1)
    try:
        schema = onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)
