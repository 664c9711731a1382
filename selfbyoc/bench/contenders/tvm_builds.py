"""TVM's three builds: ours, ours with the default schedule only, and TVM's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...codegen.target import host_target
from ...extra import extra
from ...language.known import default_registry
from ...models.generation import tvm_road
from ...models.onnx_model import import_onnx
from ...runtime.build import build
from ...runtime.generation import runtime
from .contender import Built, Contender, Inputs


def _imported(path: str) -> Any:
    return import_onnx(extra("onnx").load(path))


def _built(native: Any, names: Sequence[str], inputs: Inputs, note: str = "") -> Built:
    """As the peers are called: the tensors exist already.

    The graph executor takes its inputs once and runs; the virtual machine takes them in each call.
    """
    tensors = [runtime.to_tensor(inputs[name]) for name in names]
    run, outputs = runtime.calling(runtime.session(native), names, tensors)
    return Built(run, outputs, note)


def _selfbyoc(path: str, inputs: Inputs, threads: int) -> Built:
    library = build(_imported(path), host_target())
    return _built(library.native, [n for n, _, _ in library.inputs], inputs, _counts(library))


def _counts(library: Any) -> str:
    """What was partitioned: a build that matches nothing must be seen to."""
    counts = library.report.counts
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or "no composite matched"


def _stacked(path: str, inputs: Inputs, threads: int) -> Built:
    """The same groups of ops in one function each, but no schedule, packing or compute of ours."""
    plain = [replace(c, schedule=None, compute=None, pack={}) for c in default_registry()]
    library = build(_imported(path), host_target(), composites=plain)
    return _built(library.native, [n for n, _, _ in library.inputs], inputs, _counts(library))


def _default(path: str, inputs: Inputs, threads: int) -> Built:
    native = tvm_road.default_build(_imported(path), host_target())
    return _built(native, list(inputs), inputs)


SELFBYOC = Contender("selfbyoc", _selfbyoc)
STACKED = Contender("stacked", _stacked)
DEFAULT = Contender("tvm", _default)
