"""ONNX files. They have no checksum: a damaged one is an error, or says something else, which is
then what ONNX Runtime makes of the same file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import selfbyoc

from .fork import tried
from .modules import given
from .specimen import Specimen, difference

SLACK = 1e-3
BESIDE = 55  # bytes, as Python counts an object, from which a weight is beside: no shape is

Node = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]
CONVOLUTION: tuple[Node, ...] = (
    ("Conv", ["x", "w", "b"], ["c"], {"pads": [1, 1, 1, 1]}),
    ("Relu", ["c"], ["r"], {}),
    ("GlobalAveragePool", ["r"], ["p"], {}),
    ("Reshape", ["p", "flat"], ["f"], {}),
    ("Gemm", ["f", "d"], ["y"], {"transB": 1, "alpha": 0.5}),
)
SHAPES: tuple[Node, ...] = (
    ("ConstantOfShape", ["four"], ["ones"], {}),
    ("Shape", ["x"], ["s"], {}),
    ("Gather", ["s", "last"], ["n"], {"axis": 0}),
    ("Concat", ["minus", "n"], ["rows"], {"axis": 0}),
    ("MaxPool", ["x"], ["m"], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}),
    ("Reshape", ["m", "rows"], ["t"], {}),
    ("Transpose", ["t"], ["u"], {"perm": [1, 0]}),
    ("Pad", ["u", "pads"], ["v"], {"mode": "constant"}),
    ("Softmax", ["v"], ["q"], {"axis": -1}),
    ("Slice", ["q", "start", "stop"], ["h"], {}),
    ("ReduceMean", ["h"], ["k"], {"axes": [0], "keepdims": 0}),
    ("Expand", ["k", "wide"], ["e"], {}),
    ("Cast", ["ones"], ["float"], {"to": 1}),
    ("Add", ["e", "float"], ["z"], {}),
    ("Clip", ["z", "low"], ["y"], {}),
)


def specimens() -> Iterator[Specimen]:
    """Small ones, so that most damage hits what steers."""
    rng = np.random.default_rng(0)
    weights = {
        name: rng.standard_normal(shape).astype("float32")
        for name, shape in {"w": (2, 1, 3, 3), "b": (2,), "d": (3, 2)}.items()
    }
    flat = {"flat": np.array([1, 2])}
    convolution = _model(CONVOLUTION, {**weights, **flat}, (1, 3))
    yield _specimen("an ONNX file", convolution.SerializeToString())
    yield _beside(convolution)
    constants = {
        "four": [3, 7], "last": [3], "minus": [-1], "pads": [0, 1, 0, 1], "start": [1, 0],
        "stop": [6, 7], "wide": [3, 7],
    }  # fmt: skip
    named = {name: np.array(values) for name, values in constants.items()}
    shapes = _model(SHAPES, named | {"low": np.array(0.1, "float32")}, (3, 7))
    yield _specimen("an ONNX file that computes shapes", shapes.SerializeToString())


def _model(nodes: Sequence[Node], constants: Mapping[str, Any], out: Sequence[int]) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(kind, *names, **attrs) for kind, *names, attrs in nodes], "g",
        [info("x", TensorProto.FLOAT, (1, 1, 5, 6))], [info("y", TensorProto.FLOAT, out)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def _specimen(name: str, data: bytes, **beside: bytes) -> Specimen:
    return Specimen(name, {"model.onnx": data, **beside}, _read, _judged)


def _beside(model: Any) -> Specimen:
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        options = {"location": "weights", "size_threshold": BESIDE}
        onnx.save(model, path, save_as_external_data=True, **options)
        data, weights = path.read_bytes(), (path.parent / "weights").read_bytes()
    return _specimen("an ONNX file, weights beside it", data, weights=weights)


def _read(folder: Path) -> Any:
    """The inputs by name, and what comes of them."""
    library = selfbyoc.build(selfbyoc.from_onnx(folder / "model.onnx"), cache=False)
    arrays = given(library)
    named = {tensor[0]: array for tensor, array in zip(library.inputs, arrays, strict=True)}
    return named, list(library(named))


def _judged(found: Any, folder: Path) -> str:
    named, ours = found
    ended = tried(lambda: _theirs(folder, named))
    if ended.how != "value":
        return f"it is computed, and ONNX Runtime says {ended.how}: {ended.text}"
    return difference(ours, ended.value, SLACK)


def _theirs(folder: Path, named: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """A later IR version says no more of a model; it refuses what it does not know."""
    import onnx
    import onnxruntime

    model = onnx.load(folder / "model.onnx")
    model.ir_version = min(model.ir_version, 10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(named)))
