"""ONNX Runtime and OpenVINO, as fast as their documentation says how."""

from __future__ import annotations

from typing import Any

from ...extra import extra
from ..setting import Setting
from .contender import Built, Contender, Inputs


def _onnxruntime(path: str, inputs: Inputs, setting: Setting) -> Built:
    ort = extra("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = setting.threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = dict(inputs)
    last: list[Any] = []

    def run() -> None:
        last[:] = session.run(None, feed)

    return Built(run, lambda: last)


def _openvino(path: str, inputs: Inputs, setting: Setting) -> Built:
    """Input tensors are set once and share the caller's memory: copying them costs up to half."""
    openvino = extra("openvino")
    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": setting.threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(core.read_model(path), "CPU", settings)
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        array = inputs[next(name for name in port.names if name in inputs)]
        request.set_tensor(port, openvino.Tensor(array, shared_memory=True))
    outputs = [request.get_tensor(port) for port in compiled.outputs]
    return Built(
        request.infer, lambda: [tensor.data.copy() for tensor in outputs], keeps=inputs
    )  # fmt: skip


ONNXRUNTIME = Contender("onnxruntime", _onnxruntime, True, ("onnxruntime",), ("onnxruntime",))
OPENVINO = Contender("openvino", _openvino, True, ("openvino",), ("openvino",))
