"""Runtimes of phones, on their kernels for x86: MNN, ncnn and tract."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ....common.optional import extra
from ....errors import InputError
from ..setting import Setting
from .contender import Built, Contender, Inputs
from .converting import as_list, ends, in_32_bits, lifted, ran

# The machine code alone: the wheel's own program, `mnnconvert`, has pip install what it reports to
# its makers with, into whatever environment pip finds.
MNN_CONVERTER = "import sys, _tools; _tools.mnnconvert(sys.argv)"


def _mnn(path: str, inputs: Inputs, setting: Setting) -> Built:
    """In float32, which it calls a high precision, and with memory for Winograd and packed weights.
    Its session is made once for these shapes.
    """
    mnn, (_, results) = extra("MNN"), ends(path)
    config = {"backend": "CPU", "numThread": setting.threads}
    config |= dict.fromkeys(("precision", "memory", "power"), "high")
    manager = mnn.nn.create_runtime_manager((config,))
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "model.mnn"
        tool = [sys.executable, "-c", MNN_CONVERTER, "-f", "ONNX", "--bizCode", "bench"]
        read = lifted(path, Path(folder))
        ran([*tool, "--modelFile", read, "--MNNModel", written], Path(folder))
        net = mnn.nn.load_module_from_file(
            str(written), list(inputs), results, runtime_manager=manager, shape_mutable=False
        )
    given = []
    for array in in_32_bits(inputs).values():
        kind = mnn.expr.float if array.dtype == np.float32 else mnn.expr.int
        given.append(mnn.expr.placeholder(list(array.shape), mnn.expr.NCHW, kind))
        given[-1].write(array)
    last: list[Any] = []

    def run() -> None:
        last[:] = as_list(net.forward(given))

    def outputs() -> list[np.ndarray]:
        return [np.array(mnn.expr.convert(found, mnn.expr.NCHW).read()) for found in last]

    return Built(run, outputs, keeps=(net, manager))


def _ncnn(path: str, inputs: Inputs, setting: Setting) -> Built:
    """By pnnx, in float32. It knows no batch: that of one is left out, on both sides."""
    ncnn, pnnx = extra("ncnn"), extra("pnnx")
    if any(array.shape[:1] != (1,) for array in inputs.values()):
        raise InputError("ncnn knows no batch; expected inputs of 1 x ...")
    net = ncnn.Net()
    net.opt.num_threads = setting.threads
    for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
        setattr(net.opt, f"use_{name}", False)
    kinds = {"float32": "f32", "int64": "i64", "int32": "i32"}
    shapes = ",".join(f"{list(a.shape)}{kinds[a.dtype.name]}" for a in inputs.values())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model.onnx"
        copy.symlink_to(lifted(path, Path(folder)))  # pnnx writes beside what it reads
        told = f"inputshape={shapes.replace(' ', '')}"
        ran([pnnx.EXEC_PATH, copy, told, "fp16=0"], Path(folder))
        for load, end in ((net.load_param, "param"), (net.load_model, "bin")):
            if load(str(Path(folder) / f"model.ncnn.{end}")):
                raise InputError(f"ncnn cannot read what pnnx wrote: model.ncnn.{end}")
    given = [ncnn.Mat(np.ascontiguousarray(a[0])) for a in in_32_bits(inputs).values()]
    places, results = net.input_names(), net.output_names()
    last: list[Any] = []

    def run() -> None:
        extractor = net.create_extractor()
        for name, value in zip(places, given, strict=True):
            extractor.input(name, value)
        last[:] = [extractor.extract(name)[1] for name in results]

    return Built(run, lambda: [np.array(found)[None] for found in last], keeps=(net, inputs))


def _tract(path: str, inputs: Inputs, setting: Setting) -> Built:
    """It has no threads of its own."""
    model = extra("tract").onnx().load(path)
    kinds = {"float32": "f32", "int64": "i64", "int32": "i32", "bool": "bool"}
    for number, array in enumerate(inputs.values()):
        sizes = ",".join(map(str, array.shape))
        model.set_input_fact(number, f"{sizes},{kinds[array.dtype.name]}")
    ready, given = model.into_model().into_runnable(), list(inputs.values())
    last: list[Any] = []

    def run() -> None:
        last[:] = ready.run(given)

    return Built(run, lambda: [found.to_numpy() for found in last], "one thread")


MNN = Contender("mnn", _mnn, True, ("MNN",), ("mnn",))
NCNN = Contender("ncnn", _ncnn, True, ("ncnn", "pnnx"), ("ncnn",))
TRACT = Contender("tract", _tract, True, ("tract",), ("tract",))
