"""`--shape NAME=1x3x224x224`: an ONNX model's inputs, with every size fixed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError, ModelWarning, did_you_mean
from .dim_names import name_open_sizes, names_of, with_sizes
from .onnx.inference import about, inferred
from .real_inputs import real_inputs

if TYPE_CHECKING:
    import onnx

Shape = tuple[int, ...]
LARGEST = 2**63 - 1  # of a size, in ONNX and in TVM


def parse_shapes(texts: Sequence[str]) -> dict[str, Shape]:
    """`["x=1x3x8x8"]` -> `{"x": (1, 3, 8, 8)}`."""
    found: dict[str, Shape] = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        parts = sizes.split("x")
        if not name or not all(map(_is_size, parts)):
            expected = f"expected NAME=1x3x224x224, sizes of 1 to {LARGEST}"
            raise InputError(f"shape: {expected}, not {text!r:.100}")
        if name in found:
            raise InputError(f"shape: input {name} has two shapes")
        found[name] = tuple(map(int, parts))
    return found


def _is_size(text: str) -> bool:
    return text.isdecimal() and len(text) < 20 and 0 < int(text) <= LARGEST


def spelled(shape: Sequence[object]) -> str:
    """As `--shape` takes it."""
    return "x".join(map(str, shape))


@dataclass(frozen=True)
class _Axis:
    """One axis of an input: its size, or the name that ONNX has for an open one."""

    size: int | None
    name: str = ""

    def __str__(self) -> str:
        return self.name or ("?" if self.size is None else str(self.size))


def fix_shapes(model: onnx.ModelProto, shapes: Mapping[str, Shape], where: str) -> onnx.ModelProto:
    """`give_shapes`, and an InputError where a size is open still."""
    model = give_shapes(model, shapes, where)
    for value in real_inputs(model):
        _check_closed(value, where)
    return model


def give_shapes(model: onnx.ModelProto, shapes: Mapping[str, Shape], where: str) -> onnx.ModelProto:
    """The model with these shapes for its inputs; changed, and returned. Other sizes stay open, and
    each has a name then.

    A symbol such as `batch` has one size: what fixes it in one input fixes it in all. Where it gets
    several sizes, a ModelWarning says so, and it stays open elsewhere.
    Shapes of inputs that the model does not have are left out: see `check_known`.
    """
    name_open_sizes(model)
    inputs = real_inputs(model)
    found: dict[str, dict[int, str]] = {}
    for value in inputs:
        if value.name in shapes:
            _bind(found, value, shapes[value.name], where)
    for name, sizes in found.items():
        if len(sizes) > 1:
            told = " and ".join(f"{size} in input {of}" for size, of in sizes.items())
            warnings.warn(ModelWarning(f"{where}: {name} is given as {told}"), stacklevel=3)
    symbols = {name: next(iter(sizes)) for name, sizes in found.items() if len(sizes) == 1}
    with about(where):
        return _given(model, shapes, symbols)


def give_sizes(model: onnx.ModelProto, sizes: Mapping[str, int]) -> onnx.ModelProto:
    """The model with these sizes for its symbols; changed, and returned."""
    return _given(model, {}, sizes)


def _given(
    model: onnx.ModelProto, shapes: Mapping[str, Shape], sizes: Mapping[str, int]
) -> onnx.ModelProto:
    known = {name: with_sizes(name, tree, sizes) for name, tree in names_of(model).items()}
    changed = [_give(value, shapes.get(value.name), known) for value in real_inputs(model)]
    return _inferred(model) if any(changed) else model


def _give(value: onnx.ValueInfoProto, shape: Shape | None, sizes: Mapping[str, int | str]) -> bool:
    """Write an input's shape, or what its open sizes are now; -> whether that changed it."""
    tensor = value.type.tensor_type.shape
    before = tensor.SerializeToString()
    if shape is not None:
        del tensor.dim[:]
        tensor.SetInParent()
        for extent in shape:
            tensor.dim.add().dim_value = extent
    for dim in (dim for dim in tensor.dim if dim.dim_param):
        size = sizes[dim.dim_param]
        if isinstance(size, str):
            dim.dim_param = size
        else:
            dim.dim_value = size
    return bool(tensor.SerializeToString() != before)


def open_inputs(model: onnx.ModelProto) -> list[str]:
    """The inputs with sizes that are not known."""
    return [v.name for v in real_inputs(model) if any(a.size is None for a in _axes(v, "") or ())]


def check_known(models: Sequence[onnx.ModelProto], shapes: Mapping[str, Shape]) -> None:
    """Each shape belongs to an input of some model, or an InputError says what there is."""
    known = {value.name for model in models for value in real_inputs(model)}
    for name in shapes:
        if name not in known:
            near = did_you_mean(name, known)
            raise InputError(f"shape: no input {name!r}; known: {sorted(known)}{near}")


def _axes(value: onnx.ValueInfoProto, where: str) -> list[_Axis] | None:
    """Of an input; None where not even their number is known."""
    if not value.type.HasField("tensor_type"):
        kind = value.type.WhichOneof("value") or "nothing"
        raise InputError(f"{where}: input {value.name} is no tensor but a {kind}")
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return [_Axis(d.dim_value if d.dim_value > 0 else None, d.dim_param) for d in tensor.shape.dim]


def _bind(
    found: dict[str, dict[int, str]], value: onnx.ValueInfoProto, shape: Shape, where: str
) -> None:
    """What the symbols of an input are by its shape, and in which input."""
    axes = _axes(value, where)
    if axes is None:
        return
    if len(axes) != len(shape):
        text = f"{where}: input {value.name} is {spelled(axes)}"
        raise InputError(f"{text}, the shape given is {spelled(shape)}")
    for axis, size in zip(axes, shape, strict=True):
        if axis.name:
            found.setdefault(axis.name, {}).setdefault(size, value.name)


def _check_closed(value: onnx.ValueInfoProto, where: str) -> None:
    axes = _axes(value, where)
    if axes is None:
        raise InputError(
            f"{where}: the shape of input {value.name} is not known; "
            f"fix it, for example --shape '{value.name}=1x3x224x224'"
        )
    if any(axis.size is None for axis in axes):
        example = spelled([axis.size or 1 for axis in axes])
        raise InputError(
            f"{where}: input {value.name} is {spelled(axes)}, with open sizes; "
            f"fix them, for example --shape '{value.name}={example}'"
        )


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """The shapes of all other values follow from those of the inputs: the old ones may be wrong."""
    del model.graph.value_info[:]
    for value in model.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    # What cannot be inferred (it contradicts itself, it has 2 GB) is left to who builds the model.
    with suppress(ValueError, RuntimeError):
        model.CopyFrom(inferred(model))
    return model
