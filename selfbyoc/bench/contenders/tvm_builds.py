"""TVM's three builds: ours, ours with the default schedule only, and TVM's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...analysis.lint.file import declared_in
from ...errors import InputError
from ...language.known import default_registry
from ...models.from_onnx import from_onnx
from ...models.generation import tvm_road
from ...runtime.build import build
from ...runtime.generation import runtime
from ..setting import Setting
from .contender import Built, Contender, Inputs


def _built(native: Any, names: Sequence[str], inputs: Inputs, note: str = "") -> Built:
    """As the peers are called: the tensors exist already.

    The graph executor takes its inputs once and runs; the virtual machine takes them in each call.
    `names` are TVM's: Relax has `input_1` for `input.1`. The order is the model's.
    """
    if len(names) != len(inputs):
        raise InputError(f"TVM kept the inputs {list(names)} of {list(inputs)}")
    tensors = [runtime.to_tensor(array) for array in inputs.values()]
    run, outputs = runtime.calling(runtime.session(native), names, tensors)
    return Built(run, outputs, note)


def _selfbyoc(path: str, inputs: Inputs, setting: Setting) -> Built:
    mine = [Path(file) for file in setting.composites]
    composites = [*declared_in(mine), *default_registry()] if mine else None
    library = build(from_onnx(path), setting.tvm_target(), composites=composites)
    return _built(library.native, [n for n, _, _ in library.inputs], inputs, _counts(library))


def _counts(library: Any) -> str:
    """What was partitioned: a build that matches nothing must be seen to."""
    counts = library.report.counts
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or "no composite matched"


def _stacked(path: str, inputs: Inputs, setting: Setting) -> Built:
    """The same groups of ops in one function each, but no schedule, packing or compute of ours."""
    nothing: dict[str, Any] = {"kernel": None, "schedule": None, "compute": None, "pack": {}}
    plain = [replace(c, **nothing) for c in default_registry()]
    library = build(from_onnx(path), setting.tvm_target(), composites=plain)
    return _built(library.native, [n for n, _, _ in library.inputs], inputs, _counts(library))


def _default(path: str, inputs: Inputs, setting: Setting) -> Built:
    native = tvm_road.default_build(from_onnx(path), setting.tvm_target())
    return _built(native, list(inputs), inputs)


SELFBYOC = Contender("selfbyoc", _selfbyoc)
STACKED = Contender("stacked", _stacked)
DEFAULT = Contender("tvm", _default)
