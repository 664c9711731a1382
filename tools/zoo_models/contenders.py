"""The process of one contender of the zoo: `python -m zoo_models.contenders NAME FD`, as the
benchmark has them. What they build lies in a folder: the name of the model, and its ONNX export.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import selfbyoc
from selfbyoc.commands.bench import worker
from selfbyoc.commands.bench.contenders import CONTENDERS, Built, Contender
from selfbyoc.commands.bench.contenders.contender import Inputs
from selfbyoc.commands.bench.setting import Setting
from selfbyoc.runtime.executors.generation import executor

from .catalogue import catalogue
from .model import Made, Model
from .trial import exported

MODEL, ONNX = "model.json", "model.onnx"
_OF_FILES = {c.name: c for c in CONTENDERS}


def _model(folder: str) -> tuple[Model, str]:
    told = json.loads((Path(folder) / MODEL).read_text(encoding="utf-8"))
    return next(m for m in catalogue()[0] if m.key == told["key"]), told["size"]


def _made(folder: str) -> Made | None:
    """The module of PyTorch; None of a file."""
    model, size = _model(folder)
    return None if model.is_onnx else model.made(size)


def _selfbyoc(folder: str, inputs: Inputs, setting: Setting) -> Built:
    if (made := _made(folder)) is None:
        mod = selfbyoc.from_onnx(f"{folder}/{ONNX}")
    else:
        mod = selfbyoc.from_torch(exported(made))
    library = selfbyoc.build(mod, setting.tvm_target(), cache=False)
    names = [name for name, _, _ in library.inputs]
    tensors = [executor.to_tensor(array) for array in inputs.values()]
    run, outputs = executor.calling(executor.session(library.native), names, tensors)
    return Built(run, outputs)


def _onnx(name: str) -> Contender:
    """One that reads ONNX."""
    known = _OF_FILES[name]

    def build(folder: str, inputs: Inputs, setting: Setting) -> Built:
        return known.build(f"{folder}/{ONNX}", inputs, setting)

    return Contender(name, build, True, known.needs, known.versions)


def _inductor(folder: str, inputs: Inputs, setting: Setting) -> Built:
    """With freezing, which makes the weights constants, as they are for all others."""
    import torch

    made = _made(folder)
    if made is None:
        return _OF_FILES["inductor"].build(f"{folder}/{ONNX}", inputs, setting)
    torch.set_num_threads(setting.threads)
    compiled = torch.compile(made.module, options={"freezing": True})
    last: list[Any] = []

    def run() -> None:
        with torch.inference_mode():
            last[:] = [compiled(*made.inputs)]

    def outputs() -> Sequence[Any]:
        return [leaf.numpy() for leaf in torch.utils._pytree.tree_leaves(last)]

    run()  # compiles
    return Built(run, outputs)


READERS = ("onnxruntime", "openvino")
ZOO = (
    Contender("selfbyoc", _selfbyoc),
    *map(_onnx, READERS),
    Contender("inductor", _inductor, True, ("torch",), ("torch",)),
)

if __name__ == "__main__":
    worker.main(sys.argv[1], int(sys.argv[2]), ZOO)
