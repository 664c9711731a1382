"""What a file of few bytes may claim to need: constants of any size, computed of a few numbers.

ONNX Runtime, onnx's reference and TVM compute what depends on constants alone before a model is
called, and forms write tables whose sizes are attributes. So the size of each is looked at first:
of an op of known inputs, by itself, by onnx's own rules for shapes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.optional import extra
from ...errors import InputError
from .graph import Graph, attributes, is_of_onnx, where

if TYPE_CHECKING:
    import onnx

MOST = 1 << 28  # bytes that a constant may take which the file does not hold
_GROWS = 8  # times the bytes of all that the file holds, which it may take too: of 4 bits, float32
SMALL = 1 << 16  # elements up to which a constant is computed with
# Ops whose results are as large as some number says; of others a result is at most as large as the
# product of all that it reads.
_SIZED = frozenset(
    ("BlackmanWindow", "Col2Im", "ConstantOfShape", "ConvTranspose",
     "DFT", "DepthToSpace", "Expand", "GridSample", "HammingWindow", "HannWindow", "MaxRoiPool",
     "MaxUnpool", "MelWeightMatrix", "OneHot", "Pad", "RandomNormal", "RandomUniform", "Range",
     "Resize", "RoiAlign", "STFT", "TfIdfVectorizer", "Tile", "Upsample")
)  # fmt: skip
_TOLD = frozenset(("AffineGrid", "CenterCropPad"))  # the second input says it
_WIDE = ("block_size", "dilations", "kernel_shape", "pads", "size", "strides")
_PADDED = frozenset(("AveragePool", "Conv", "LpPool", "MaxPool"))


class TooLarge(InputError):
    """A constant that no file of this size can mean."""


def check_room(node: onnx.NodeProto, *extents: int, itemsize: int = 8) -> None:
    """Raises TooLarge for a table that a node would take."""
    if math.prod(extents) * itemsize > MOST:
        text = f"it takes a table of {' x '.join(map(str, extents))} elements"
        raise TooLarge(f"{where(node.op_type, node.name)}: {text}; expected at most {MOST:,} bytes")


def check_claims(model: onnx.ModelProto) -> None:
    """Raises TooLarge for a node whose result is computed ahead, and takes too much memory."""
    weights = [*model.graph.initializer, *filter(None, map(_value, model.graph.node))]
    held = sum(_nbytes(t.data_type, t.dims) for t in weights)
    _look(model, model.graph, {}, max(MOST, _GROWS * held))


def _look(
    model: onnx.ModelProto, graph: onnx.GraphProto, outer: Mapping[str, Any], most: int
) -> None:
    """`outer`: what is known outside of a branch: arrays, or types of what is larger."""
    known = dict(outer) | {t.name: _of_weight(t) for t in graph.initializer}
    typed = Graph(SimpleNamespace(graph=graph, opset_import=model.opset_import))
    for node in graph.node:
        inner = [g for a in node.attribute for g in (a.g, *a.graphs) if g.node]
        for each in inner:
            _look(model, each, known, most)
        if node.op_type == "Split":
            _check_parts(node)
        if (value := _value(node)) is not None:
            known[node.output[0]] = _of_weight(value)
            continue
        if node.op_type in ("Shape", "Size") and node.input[0] not in known:
            shape = typed.shape(node.input[0])
            known |= {node.output[0]: of_shape(node, shape)} if shape is not None else {}
            continue
        is_known = all(name in known for name in node.input if name) and not inner
        if is_known and is_of_onnx(node):
            given = {name: known[name] for name in node.input if name}
            known |= _results(model, node, given, most)


def _value(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The tensor of a Constant."""
    values = node.attribute if node.op_type == "Constant" else ()
    return next((a.t for a in values if a.HasField("t")), None)


def _of_weight(tensor: onnx.TensorProto) -> Any:
    onnx = extra("onnx")
    is_here = tensor.data_location != onnx.TensorProto.EXTERNAL
    if is_here and math.prod(tensor.dims) <= SMALL:
        return onnx.numpy_helper.to_array(tensor)
    return onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))


def _results(
    model: onnx.ModelProto, node: onnx.NodeProto, given: Mapping[str, Any], most: int
) -> dict[str, Any]:
    """What is known of a node's results, which are computed if they are small."""
    from .computing import by_reference  # which asks here how large they are

    found = grown(node, given, model)
    for name, each in found.items():
        _check(node, name, each, most)
    arrays = {n: each for n, each in given.items() if isinstance(each, np.ndarray)}
    if len(arrays) < len(given) or elements(found) > SMALL:
        return found
    results = by_reference(node, arrays, model) or []
    return dict(zip(node.output, results, strict=False))


def grown(node: onnx.NodeProto, given: Mapping[str, Any], model: onnx.ModelProto) -> dict[str, Any]:
    """The types of the results of a node of these inputs, by onnx's rules, if they may be larger
    than what it reads.
    """
    onnx = extra("onnx")
    read = [math.prod(_dims(each)) for each in given.values()]
    if node.op_type in _TOLD:
        return _of_told(node, given)
    is_padded = node.op_type in _PADDED and 0 not in read  # else onnx 1.18 ends the process
    if not is_padded and node.op_type not in _SIZED and math.prod(max(1, n) for n in read) <= SMALL:
        return {}
    arrays = {n: each for n, each in given.items() if isinstance(each, np.ndarray)}
    helper, to_tensor = onnx.helper, onnx.numpy_helper.from_array
    inputs = [helper.make_value_info(n, each) for n, each in given.items() if n not in arrays]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    tensors = [to_tensor(each, n) for n, each in arrays.items()]
    graph = helper.make_graph([node], "one", inputs, outputs, tensors)
    one = helper.make_model(graph, opset_imports=list(model.opset_import))
    try:
        done = onnx.shape_inference.infer_shapes(one, data_prop=True)
    except Exception:  # of a node that is no node of ONNX's: who reads it says so
        return {}
    known = {value.name: value.type for value in done.graph.output}
    return {n: each for n, each in known.items() if each.tensor_type.HasField("shape")}


def is_wide(node: onnx.NodeProto) -> bool:
    """Whether onnx's reference would repeat or pad what a node reads beyond all measure."""
    given = [n for a in node.attribute if a.name in _WIDE for n in (a.i, *a.ints)]
    return max(map(abs, given), default=0) > SMALL


def _of_told(node: onnx.NodeProto, given: Mapping[str, Any]) -> dict[str, Any]:
    helper = extra("onnx").helper
    dims = given.get(node.input[1])
    if not isinstance(dims, np.ndarray):
        return {}
    return {node.output[0]: helper.make_tensor_type_proto(1, np.abs(dims).ravel().tolist())}


def elements(found: Mapping[str, Any]) -> int:
    """How many all of these have."""
    return sum(math.prod(_dims(each)) for each in found.values())


def of_shape(node: onnx.NodeProto, shape: tuple[int, ...]) -> np.ndarray:
    """The result of a Shape or a Size."""
    if node.op_type == "Size":
        return np.asarray(math.prod(shape), np.int64)
    given = attributes(node)
    return np.asarray(shape, np.int64)[given.get("start", 0) : given.get("end", len(shape))]


def _check(node: onnx.NodeProto, name: str, found: onnx.TypeProto, most: int) -> None:
    dims = _dims(found)
    if (size := _nbytes(found.tensor_type.elem_type, dims)) > most:
        text = f"its result {name!r}, {list(dims)}, is computed of constants alone, and takes"
        text += f" {size:,} bytes; expected at most {most:,}: give it as an input or as a weight"
        raise TooLarge(f"{where(node.op_type, node.name)}: {text}")


def _nbytes(kind: int, dims: Sequence[int]) -> int:
    onnx = extra("onnx")
    is_known = kind in onnx.TensorProto.DataType.values() and kind
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind) if is_known else np.dtype("int8")
    return math.prod(dims) * dtype.itemsize


def _dims(value: Any) -> tuple[int, ...]:
    """0 for a size that is not known."""
    if isinstance(value, np.ndarray):
        return value.shape
    return tuple(max(d.dim_value, 0) for d in value.tensor_type.shape.dim)


def _check_parts(node: onnx.NodeProto) -> None:
    parts = attributes(node).get("num_outputs", len(node.output))
    if parts != len(node.output):
        text = f"expected num_outputs={len(node.output)}, as it has outputs, found {parts}"
        raise TooLarge(f"{where(node.op_type, node.name)}: {text}")
