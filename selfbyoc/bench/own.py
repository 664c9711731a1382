"""Workloads that a user brings: ONNX files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..extra import extra
from ..models.onnx_model import read_onnx
from ..models.shapes import Shape, check_known, fix_shapes, parse_shapes, real_inputs, spelled
from .workload import Workload

OWN = "own"
TRUTH = "unoptimised"


def own_workloads(paths: Sequence[Path], shapes: Sequence[str] = ()) -> list[Workload]:
    """One for each file, all of them read: what is wrong with one is an error before any is timed.

    `shapes` are texts such as `x=1x3x224x224`; each counts for all models with such an input.
    """
    asked = parse_shapes(shapes)
    models = [read_onnx(path) for path in paths]
    check_known(models, asked)
    names = _names(paths)
    found = zip(names, paths, models, strict=True)
    return [_workload(name, path, model, asked) for name, path, model in found]


def _names(paths: Sequence[Path]) -> list[str]:
    """The file's own name where that tells them apart, else the path."""
    stems = [path.stem for path in paths]
    names = [s if stems.count(s) == 1 else str(p) for s, p in zip(stems, paths, strict=True)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name} is given twice")
    return names


def _workload(name: str, path: Path, model: Any, shapes: Mapping[str, Shape]) -> Workload:
    mine = [f"{v.name}={spelled(shapes[v.name])}" for v in real_inputs(model) if v.name in shapes]
    model = without_weights_as_inputs(fix_shapes(model, shapes, name))
    check_types(model, name)
    return Workload(" ".join([name, *mine]), OWN, lambda: model, TRUTH, key_of(path))


def key_of(path: Path) -> str:
    """What tells a file from its next version."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def without_weights_as_inputs(model: Any) -> Any:
    """Weights are constants for everybody: an input with a default could be given another value."""
    inputs = real_inputs(model)
    if len(inputs) < len(model.graph.input):
        kept = [copied(value) for value in inputs]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        model.ir_version = max(model.ir_version, 4)  # before 4 an initializer had to be an input
    return model


def copied(value: Any) -> Any:
    """A message of Protobuf of its own."""
    copy = type(value)()
    copy.CopyFrom(value)
    return copy


def check_types(model: Any, name: str) -> None:
    """Numbers can be made up; texts cannot."""
    types = extra("onnx").TensorProto
    for value in real_inputs(model):
        if value.type.tensor_type.elem_type in (types.STRING, types.UNDEFINED):
            kind = types.DataType.Name(value.type.tensor_type.elem_type)
            raise InputError(f"{name}: input {value.name} is of type {kind}, expected numbers")
