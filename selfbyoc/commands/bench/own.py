"""Workloads that a user brings: ONNX files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.optional import extra
from ...errors import InputError
from ...models.onnx_model import read_onnx
from ...models.real_inputs import check_initializers, keep_constants, real_inputs
from ...models.shapes import Shape, check_known, fix_shapes, parse_shapes, spelled
from .workload import Workload

if TYPE_CHECKING:
    import onnx

OWN = "own"
TRUTH = "unoptimised"


def own_workloads(
    paths: Sequence[Path], shapes: Sequence[str] = (), inputs: Sequence[str] = ()
) -> list[Workload]:
    """One for each file, all of them read: what is wrong with one is an error before any is timed.

    `shapes` are texts such as `x=1x3x224x224`; each counts for all models with such an input.
    `inputs` are initializers that count as inputs, for everybody; all others are constants, for
    an input with a default could be given another value.
    """
    asked = parse_shapes(shapes)
    models = [read_onnx(path) for path in paths]
    check_initializers(models, inputs)
    for model in models:
        keep_constants(model, inputs)
    check_known(models, asked)
    names = _names(paths)
    found = zip(names, paths, models, strict=True)
    return [_workload(name, path, model, asked, inputs) for name, path, model in found]


def _names(paths: Sequence[Path]) -> list[str]:
    """The file's own name where that tells them apart, else the path."""
    stems = [path.stem for path in paths]
    names = [s if stems.count(s) == 1 else str(p) for s, p in zip(stems, paths, strict=True)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name} is given twice")
    return names


def _workload(
    name: str,
    path: Path,
    model: onnx.ModelProto,
    shapes: Mapping[str, Shape],
    inputs: Sequence[str],
) -> Workload:
    there = [v.name for v in real_inputs(model)]
    mine = [f"input={n}" for n in there if n in inputs]
    mine += [f"{n}={spelled(shapes[n])}" for n in there if n in shapes]
    model = fix_shapes(model, shapes, name)
    check_types(model, name)
    return Workload(" ".join([name, *mine]), OWN, lambda: model, TRUTH, key_of(path))


def key_of(path: Path) -> str:
    """What tells a file from its next version."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def copied(value: onnx.ModelProto) -> onnx.ModelProto:
    """A message of Protobuf of its own."""
    copy = type(value)()
    copy.CopyFrom(value)
    return copy


def check_types(model: onnx.ModelProto, name: str) -> None:
    """Numbers can be made up; texts cannot."""
    types = extra("onnx").TensorProto
    for value in real_inputs(model):
        if value.type.tensor_type.elem_type in (types.STRING, types.UNDEFINED):
            kind = types.DataType.Name(value.type.tensor_type.elem_type)
            raise InputError(f"{name}: input {value.name} is of type {kind}, expected numbers")
