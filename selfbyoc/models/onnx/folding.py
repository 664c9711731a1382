"""What an ONNX model computes from small constants alone, computed once: shapes above all.

ONNX Runtime does it (its basic level): exact, quick, and in the extra `onnx` already. `onnxsim` and
`onnxslim` call it too, and bring more packages. Its fusions are left out, and so is what moves
transposes: which ops become one is what this library is for, and its patterns know the ops as
exporters write them. Weights take no part; they would only be copied.
"""

from __future__ import annotations

import math
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import InputError, one_line
from ...extra import extra
from .graph import nodes

_FUSIONS = (
    "BatchNormalizationAddFusion", "ClipQuantFusion", "ConvAddFusion", "ConvBNFusion",
    "ConvMulFusion", "DivMulFusion", "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion",
    "MatMulAddFusion", "MatmulBNFusion", "NotWhereFusion", "PadFusion", "ReluQuantFusion",
    "ReshapeFusion", "TransposeOptimizer",
)  # fmt: skip
_NEWEST = 10  # IR version; later ones say more of devices, and ONNX Runtime opens them years after
_WEIGHT = 4096  # elements from which a constant is a weight: no shape, no table of limits or axes


def folded(model: Any) -> Any:
    """The model without ops whose inputs are small constants; a new one, with the same inputs,
    outputs and weights.

    Raises InputError where ONNX Runtime does not open the model.
    """
    onnx, runtime = extra("onnx"), extra("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    bare, weights = _without_weights(model)
    bare.ir_version = min(bare.ir_version, _NEWEST)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        options.optimized_model_filepath = str(path)
        try:
            runtime.InferenceSession(
                bare.SerializeToString(),
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=list(_FUSIONS),
            )
            done = onnx.load(str(path))
        except Exception as err:  # its own classes, one an error code, under RuntimeError or none
            raise InputError(f"ONNX Runtime does not open it: {_line(err)}") from err
    return _with_weights(_tidied(done, model), weights)


def contradiction(model: Any) -> str:
    """What a model says that cannot be, such as an output of another type than its node's: what
    onnx infers, its weights aside. '' where nothing is known to be wrong.
    """
    bare, _ = _without_weights(model)
    inference = extra("onnx").shape_inference
    try:
        inference.infer_shapes(bare, check_type=True, strict_mode=True)
    except (inference.InferenceError, ValueError, RuntimeError) as err:
        return one_line(err)
    return ""


def _without_weights(model: Any) -> tuple[Any, dict[str, Any]]:
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


def _copy(message: Any, field: Any, value: Any) -> None:
    if hasattr(value, "extend"):
        getattr(message, field.name).extend(value)
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(value)
    else:
        setattr(message, field.name, value)


def _with_weights(done: Any, weights: dict[str, Any]) -> Any:
    graph = done.graph
    kept = [value for value in graph.input if value.name not in weights]
    copies = [type(value).FromString(value.SerializeToString()) for value in kept]
    del graph.input[:]
    graph.input.extend(copies)
    used = {name for node in nodes(graph) for name in node.input}
    used |= {value.name for value in graph.output}
    graph.initializer.extend(t for name, t in weights.items() if name in used)
    done.ir_version = max(done.ir_version, 4)  # before 4 an initializer had to be an input too
    return done


def _line(err: Exception) -> str:
    """ONNX Runtime's message without its code."""
    text = (str(err).strip().splitlines() or [type(err).__name__])[0]
    return text.rpartition(" : FAIL : ")[2]


def _tidied(done: Any, model: Any) -> Any:
    """Without the domains that ONNX Runtime adds; with the shapes that follow."""
    used = {node.domain for node in nodes(done.graph)} | {e.domain for e in model.opset_import}
    kept = [(entry.domain, entry.version) for entry in done.opset_import if entry.domain in used]
    del done.opset_import[:]
    for domain, version in kept:
        done.opset_import.add(domain=domain, version=version)
    with suppress(ValueError, RuntimeError):  # what follows no rule of onnx's has no shape there
        return extra("onnx").shape_inference.infer_shapes(done)
    return done
