"""TVM's three builds: ours, ours with the default schedule only, and TVM's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....errors import InputError
from ....language.known import default_registry
from ....models.from_onnx import from_onnx
from ....models.generation import tvm_road
from ....runtime.build import build
from ....runtime.executors.generation import executor
from ....runtime.library import Library
from ....tvm.types import Module
from ...model_file import composites_in
from ..setting import Setting
from .contender import Built, Contender, Inputs


def on_machine(machine: Module, names: Sequence[str], inputs: Inputs, note: str = "") -> Built:
    """An executor on these inputs, as the peers are called: the tensors exist already.

    The graph executor takes its inputs once and runs; the virtual machine takes them in each call.
    `names` are TVM's: Relax has `input_1` for `input.1`. The order is the model's.
    """
    if len(names) != len(inputs):
        raise InputError(f"TVM kept the inputs {list(names)} of {list(inputs)}")
    tensors = [executor.to_tensor(array) for array in inputs.values()]
    run, outputs = executor.calling(machine, names, tensors)
    return Built(run, outputs, note)


def _selfbyoc(path: str, inputs: Inputs, setting: Setting) -> Built:
    return _called(our_library(path, setting), inputs)


def our_library(
    path: str, setting: Setting, shapes: Mapping[str, Sequence[int]] | None = None
) -> Library:
    """Our build of a model, for some shapes of its inputs."""
    mod, target = from_onnx(path, shapes), setting.tvm_target()
    composites = composites_in(setting.composites)
    return build(mod, target, composites=composites, requantize=setting.requantize)


def _called(library: Library, inputs: Inputs) -> Built:
    return on_machine(executor.session(library.native), names(library), inputs, counts(library))


def names(library: Library) -> list[str]:
    """Of its inputs."""
    return [name for name, _, _ in library.inputs]


def counts(library: Any) -> str:
    """What was partitioned: a build that matches nothing must be seen to."""
    found = library.report.counts
    return ", ".join(f"{n} {name}" for name, n in found.items()) or "no composite matched"


def _stacked(path: str, inputs: Inputs, setting: Setting) -> Built:
    """The same groups of ops in one function each, but no schedule, packing or compute of ours."""
    nothing: dict[str, Any] = {"kernel": None, "schedule": None, "compute": None, "pack": {}}
    plain = [replace(c, **nothing) for c in default_registry()]
    library = build(from_onnx(path), setting.tvm_target(), composites=plain)
    return _called(library, inputs)


def _default(path: str, inputs: Inputs, setting: Setting) -> Built:
    native = tvm_road.default_build(from_onnx(path), setting.tvm_target())
    return on_machine(executor.session(native), list(inputs), inputs)


SELFBYOC = Contender("selfbyoc", _selfbyoc)
STACKED = Contender("stacked", _stacked)
DEFAULT = Contender("tvm", _default)
