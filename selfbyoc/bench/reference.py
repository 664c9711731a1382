"""What a workload must compute: ONNX's own reference implementation, in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..extra import extra


def reference(model: Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs; independent of TVM and of every peer."""
    onnx = extra("onnx")
    from onnx.reference import ReferenceEvaluator

    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for tensor in wide.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(_wide(onnx, tensor), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    given = {name: _as_double(array) for name, array in inputs.items()}
    return ReferenceEvaluator(wide).run(None, given)


def _wide(onnx: Any, tensor: Any) -> np.ndarray:
    return _as_double(onnx.numpy_helper.to_array(tensor))


def _as_double(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype == np.float32 else array
