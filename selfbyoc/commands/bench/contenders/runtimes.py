"""ONNX Runtime and OpenVINO, as fast as their documentation says how."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ....common.optional import extra
from ..setting import Setting
from .contender import Built, Contender, Inputs

if TYPE_CHECKING:
    import onnxruntime
    import openvino

NOTHING: Mapping[str, object] = MappingProxyType({})


def _onnxruntime(path: str, inputs: Inputs, setting: Setting) -> Built:
    return on_session(ort_session(path, setting), inputs)


def ort_session(
    path: str, setting: Setting, changes: Mapping[str, object] = NOTHING
) -> onnxruntime.InferenceSession:
    """A model loaded by ONNX Runtime; `changes` are of the session's options."""
    ort = extra("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = setting.threads
    for name, value in changes.items():
        setattr(options, name, value)
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def on_session(session: onnxruntime.InferenceSession, inputs: Inputs) -> Built:
    """What ONNX Runtime loaded, on these inputs."""
    feed = dict(inputs)
    last: list[Any] = []

    def run() -> None:
        last[:] = session.run(None, feed)

    return Built(run, lambda: last)


def _openvino(path: str, inputs: Inputs, setting: Setting) -> Built:
    return on_compiled(ov_compiled(path, setting), inputs)


def ov_compiled(
    path: str, setting: Setting, changes: Mapping[str, object] = NOTHING
) -> openvino.CompiledModel:
    """A model compiled by OpenVINO, with more settings than these where there are any."""
    openvino = extra("openvino")
    core = openvino.Core()
    settings: dict[str, object] = {
        "INFERENCE_NUM_THREADS": setting.threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    return core.compile_model(core.read_model(path), "CPU", settings | dict(changes))


def on_compiled(compiled: openvino.CompiledModel, inputs: Inputs) -> Built:
    """Input tensors are set once and share the caller's memory: copying them costs up to half.
    Output tensors are asked for after a run: those of open sizes are new ones then.
    """
    openvino = extra("openvino")
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        array = inputs[next(name for name in port.names if name in inputs)]
        request.set_tensor(port, openvino.Tensor(array, shared_memory=True))

    def outputs() -> list[np.ndarray]:
        return [request.get_tensor(port).data.copy() for port in compiled.outputs]

    return Built(request.infer, outputs, keeps=inputs)


ONNXRUNTIME = Contender("onnxruntime", _onnxruntime, True, ("onnxruntime",), ("onnxruntime",))
OPENVINO = Contender("openvino", _openvino, True, ("openvino",), ("openvino",))
