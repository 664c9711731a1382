"""What an ONNX model computes from small constants alone, computed once: shapes above all.

ONNX Runtime does it (its basic level): exact, quick, and in the extra `onnx` already. `onnxsim` and
`onnxslim` call it too, and bring more packages. Its fusions are left out, and so is what moves
transposes: which ops become one is what this library is for, and its patterns know the ops as
exporters write them. Weights take no part; they would only be copied.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.optional import extra
from ...errors import InputError, one_line
from .claims import check_claims
from .computing import computed
from .extents import below_zero
from .graph import nodes
from .halves import computed_in_order, has_halves
from .inference import BelowZero, Ended, apart, inferred, may_end
from .weights import without_weights

if TYPE_CHECKING:
    import onnx

_FUSIONS = (
    "BatchNormalizationAddFusion", "ClipQuantFusion", "ConvAddFusion", "ConvBNFusion",
    "ConvMulFusion", "DivMulFusion", "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion",
    "MatMulAddFusion", "MatmulBNFusion", "NotWhereFusion", "PadFusion", "ReluQuantFusion",
    "ReshapeFusion", "TransposeOptimizer",
)  # fmt: skip
_NEWEST = 10  # IR version; later ones say more of devices, and ONNX Runtime opens them years after


def folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without ops whose inputs are small constants; a new one, with the same inputs,
    outputs and weights.

    Raises InputError where ONNX Runtime does not open the model, or ends at it.
    """
    extra("onnxruntime")  # what is missing is told here, not in a fork
    check_claims(model)
    if has_halves(model):
        return computed_in_order(model)
    bare, weights = without_weights(model)
    bare.ir_version = min(bare.ir_version, _NEWEST)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "folded.onnx")
        opened = partial(_opened, bare, path)
        try:
            why_not = apart(opened) if may_end(bare) else opened()
        except Ended as err:
            if found := below_zero(computed(bare), inside=True):
                raise BelowZero(found) from err
            raise InputError(f"ONNX Runtime does not survive it: {err}") from err
        if why_not:
            raise InputError(f"ONNX Runtime does not open it: {why_not}")
        done = _loaded(path)
    return _with_weights(_tidied(done, model), weights)


def _opened(bare: onnx.ModelProto, path: str) -> str:
    """Have ONNX Runtime write there what it makes of a model; why it does not, or ''."""
    runtime = extra("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    options.optimized_model_filepath = path
    try:
        runtime.InferenceSession(
            bare.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=list(_FUSIONS),
        )
    except Exception as err:  # its own classes, one an error code, under RuntimeError or none
        return _line(err)
    return ""


def _loaded(path: str) -> onnx.ModelProto:
    try:
        return extra("onnx").load(path)
    except Exception as err:  # protobuf's own, among others
        raise InputError(f"ONNX Runtime wrote no model: {one_line(err)}") from err


def contradiction(model: onnx.ModelProto) -> str:
    """What a model says that cannot be, such as an output of another type than its node's: what
    onnx infers, its weights aside. '' where nothing is known to be wrong.
    """
    bare, _ = without_weights(model)
    try:
        inferred(bare, check_type=True, strict_mode=True)
    except Ended as err:
        return str(err)
    except (extra("onnx").shape_inference.InferenceError, ValueError, RuntimeError) as err:
        return one_line(err)
    return ""


def _with_weights(done: onnx.ModelProto, weights: dict[str, onnx.TensorProto]) -> onnx.ModelProto:
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


def _tidied(done: onnx.ModelProto, model: onnx.ModelProto) -> onnx.ModelProto:
    """Without the domains that ONNX Runtime adds; with the shapes that follow."""
    used = {node.domain for node in nodes(done.graph)} | {e.domain for e in model.opset_import}
    kept = [(entry.domain, entry.version) for entry in done.opset_import if entry.domain in used]
    del done.opset_import[:]
    for domain, version in kept:
        done.opset_import.add(domain=domain, version=version)
    with suppress(ValueError, RuntimeError):  # what follows no rule of onnx's has no shape there
        return inferred(done, is_opened=True)
    return done
