"""What a workload must compute, by someone who optimises nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ...common.optional import extra
from ...errors import InputError, one_line
from ...models.onnx.graph import nodes

if TYPE_CHECKING:
    import onnx

# Before it, Softmax, LRN and others meant something else than in onnx' own implementation.
OLDEST_OPSET = 13


def unoptimised(path: str, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs by ONNX Runtime, nothing fused and nothing rewritten; where it is not there, does
    not serve or does not know the model, by ONNX's own implementation.
    """
    try:
        return _runtime(path, inputs)
    except Exception as err:  # MissingExtra, ToolError, and all that ONNX Runtime raises
        reasons = [f"ONNX Runtime: {one_line(err)}"]
    onnx = extra("onnx")
    model = onnx.load(path)
    opset = min((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if opset < OLDEST_OPSET:
        reasons.append(f"ONNX's own implementation: its opset {opset} is below {OLDEST_OPSET}")
        raise InputError("; ".join(reasons))
    try:
        return reference(model, inputs)
    except Exception as err:  # plain errors of many kinds
        raise InputError("; ".join([*reasons, f"onnx: {one_line(err)}"])) from err


def _runtime(path: str, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    ort = extra("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(inputs))


def reference(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs by ONNX's own implementation in float64: independent of TVM and of all peers."""
    onnx = extra("onnx")
    from onnx.reference import ReferenceEvaluator

    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for tensor in wide.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(_wide(onnx, tensor), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for node in nodes(wide.graph):
        for attribute in node.attribute:
            _widen(onnx, node.op_type, attribute)
    given = {name: _as_double(array) for name, array in inputs.items()}
    return ReferenceEvaluator(wide).run(None, given)


def _widen(onnx: ModuleType, op: str, attribute: onnx.AttributeProto) -> None:
    """A constant within a node, and what a node casts to."""
    types = onnx.TensorProto
    if attribute.HasField("t") and attribute.t.data_type == types.FLOAT:
        attribute.t.CopyFrom(onnx.numpy_helper.from_array(_wide(onnx, attribute.t)))
    elif op == "Cast" and attribute.name == "to" and attribute.i == types.FLOAT:
        attribute.i = types.DOUBLE


def _wide(onnx: ModuleType, tensor: onnx.TensorProto) -> np.ndarray:
    return _as_double(onnx.numpy_helper.to_array(tensor))


def _as_double(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype == np.float32 else array
