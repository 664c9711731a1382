"""A model without its weights: what looks at shapes alone need not copy them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...common.optional import extra
from .graph import Message

if TYPE_CHECKING:
    import onnx

_WEIGHT = 4096  # elements from which a constant is a weight: no shape, no table of limits or axes


def without_weights(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, onnx.TensorProto]]:
    """The model with large constants as inputs, and these constants by name."""
    bare = type(model)()
    given = {value.name for value in model.graph.input}
    weights = {t.name: t for t in model.graph.initializer if math.prod(t.dims) >= _WEIGHT}
    for field, value in model.ListFields():
        if field.name != "graph":
            _copy(bare, field, value)
    for field, value in model.graph.ListFields():
        if field.name != "initializer":
            _copy(bare.graph, field, value)
    small = [t for t in model.graph.initializer if t.name not in weights]
    bare.graph.initializer.extend(small)
    make = extra("onnx").helper.make_tensor_value_info
    missing = [t for t in weights.values() if t.name not in given]
    bare.graph.input.extend(make(t.name, t.data_type, list(t.dims)) for t in missing)
    return bare, weights


def _copy(message: Message, field: Any, value: Any) -> None:
    if hasattr(value, "extend"):
        getattr(message, field.name).extend(value)
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(value)
    else:
        setattr(message, field.name, value)
