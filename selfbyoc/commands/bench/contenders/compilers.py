"""Compilers of whole models: IREE from the ONNX file, ExecuTorch and LiteRT from its translation to
PyTorch.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from ....common.optional import extra
from ..setting import Setting
from .contender import Built, Contender, Inputs
from .converting import OPSET, as_list, lifted, ran
from .pytorch import module


def _iree(path: str, inputs: Inputs, setting: Setting) -> Built:
    """For this CPU, at its highest level; tensors stay on its device."""
    runtime, tools = extra("iree.runtime"), extra("iree.compiler.tools")
    options = [
        "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "model.mlir"
        read = lifted(path, Path(folder))
        tool = [sys.executable, "-m", "iree.compiler.tools.import_onnx", read, "-o", written]
        ran([*tool, "--opset-version", OPSET], Path(folder))
        made = tools.compile_file(str(written), input_type="onnx", extra_args=options)
    runtime.flags.parse_flags(f"--task_topology_group_count={setting.threads}")
    config = runtime.Config("local-task")
    context = runtime.SystemContext(config=config)
    compiled = runtime.VmModule.copy_buffer(context.instance, made)
    context.add_vm_module(compiled)
    (name,) = (n for n in compiled.function_names if not n.startswith("__") and "$" not in n)
    function = context.modules[compiled.name][name]
    given = [runtime.asdevicearray(config.device, array) for array in inputs.values()]
    last: list[Any] = []

    def run() -> None:
        last[:] = as_list(function(*given))

    return Built(run, lambda: [found.to_host() for found in last], keeps=context)


def _executorch(path: str, inputs: Inputs, setting: Setting) -> Built:
    """By XNNPACK, and its portable kernels for what that does not take."""
    torch = extra("torch")
    xnnpack = extra("executorch.backends.xnnpack.partition.xnnpack_partitioner")
    lower = extra("executorch.exir").to_edge_transform_and_lower
    given = tuple(torch.from_numpy(array) for array in inputs.values())
    exported = torch.export.export(module(path, setting.threads), given)
    program = lower(exported, partitioner=[xnnpack.XnnpackPartitioner()]).to_executorch()
    runtime = extra("executorch.runtime").Runtime.get()
    bindings = extra("executorch.extension.pybindings.portable_lib")
    bindings._unsafe_reset_threadpool(setting.threads)
    method = runtime.load_program(program.buffer).load_method("forward")
    last: list[Any] = []

    def run() -> None:
        last[:] = method.execute(given)

    return Built(run, lambda: [found.numpy() for found in last], keeps=program)


def _litert(path: str, inputs: Inputs, setting: Setting) -> Built:
    """By its XNNPACK, as its interpreter has it by default."""
    torch, litert = extra("torch"), extra("litert_torch")
    given = tuple(torch.from_numpy(array) for array in inputs.values())
    made = litert.convert(module(path, setting.threads), given)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "model.tflite"
        made.export(str(written))
        content = written.read_bytes()
    interpreter = extra("ai_edge_litert.interpreter").Interpreter(
        model_content=content, num_threads=setting.threads
    )
    interpreter.allocate_tensors()
    for place, array in zip(interpreter.get_input_details(), inputs.values(), strict=True):
        interpreter.set_tensor(place["index"], array.astype(place["dtype"]))
    results = [place["index"] for place in interpreter.get_output_details()]
    return Built(interpreter.invoke, lambda: [interpreter.get_tensor(n).copy() for n in results])


IREE = Contender(
    "iree", _iree, True, ("iree.compiler", "iree.runtime"), ("iree-base-compiler",)
)  # fmt: skip
# `executorch` itself is a namespace: what says that it is there is a package in it.
EXECUTORCH = Contender(
    "executorch", _executorch, True, ("executorch.exir", "torch"), ("executorch",)
)  # fmt: skip
LITERT = Contender(
    "litert", _litert, True, ("ai_edge_litert", "litert_torch", "torch"), ("ai-edge-litert",)
)  # fmt: skip
