"""`--shape NAME=1x3x224x224`: an ONNX model's inputs, with every size fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, did_you_mean
from ..extra import extra

Shape = tuple[int, ...]


def parse_shapes(texts: Sequence[str]) -> dict[str, Shape]:
    """`["x=1x3x8x8"]` -> `{"x": (1, 3, 8, 8)}`."""
    found: dict[str, Shape] = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        parts = sizes.split("x")
        if not name or not all(part.isdecimal() and int(part) > 0 for part in parts):
            raise InputError(f"shape: expected NAME=1x3x224x224, sizes of 1 and more, not {text!r}")
        if name in found:
            raise InputError(f"shape: input {name} has two shapes")
        found[name] = tuple(map(int, parts))
    return found


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """`["length=128"]` -> `{"length": 128}`."""
    found: dict[str, int] = {}
    for text in texts:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal() or int(size) < 1:
            raise InputError(f"size: expected NAME=128, a size of 1 or more, not {text!r}")
        if name in found:
            raise InputError(f"size: {name} has two sizes")
        found[name] = int(size)
    return found


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


def fix_shapes(model: Any, shapes: Mapping[str, Shape], where: str) -> Any:
    """`give_shapes`, and an InputError where a size is open still."""
    model = give_shapes(model, shapes, where)
    for value in real_inputs(model):
        _check_closed(value, where)
    return model


def give_shapes(model: Any, shapes: Mapping[str, Shape], where: str) -> Any:
    """The model with these shapes for its inputs; changed, and returned. Other sizes stay open.

    A symbol such as `batch` has one size: what fixes it in one input fixes it in all.
    Shapes of inputs that the model does not have are left out: see `check_known`.
    """
    inputs = real_inputs(model)
    symbols: dict[str, int] = {}
    for value in inputs:
        if value.name in shapes:
            _bind(symbols, _axes(value, where), shapes[value.name], f"{where}: input {value.name}")
    changed = [_give(value, shapes.get(value.name), symbols) for value in inputs]
    return _inferred(model) if any(changed) else model


def _give(value: Any, shape: Shape | None, symbols: Mapping[str, int]) -> bool:
    """Write an input's shape, or the sizes of its symbols; -> whether that changed it."""
    tensor = value.type.tensor_type.shape
    before = tensor.SerializeToString()
    if shape is not None:
        del tensor.dim[:]
        tensor.SetInParent()
        for size in shape:
            tensor.dim.add().dim_value = size
    for dim in tensor.dim:
        if dim.dim_value <= 0 and dim.dim_param in symbols:
            dim.dim_value = symbols[dim.dim_param]
    return bool(tensor.SerializeToString() != before)


def real_inputs(model: Any) -> list[Any]:
    """The inputs that a caller gives: before ONNX 1.5 a weight had to be an input too."""
    weights = {tensor.name for tensor in model.graph.initializer}
    weights |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return [value for value in model.graph.input if value.name not in weights]


def open_inputs(model: Any) -> list[str]:
    """The inputs with sizes that are not known."""
    return [v.name for v in real_inputs(model) if any(a.size is None for a in _axes(v, "") or ())]


def check_known(models: Sequence[Any], shapes: Mapping[str, Shape]) -> None:
    """Each shape belongs to an input of some model, or an InputError says what there is."""
    known = {value.name for model in models for value in real_inputs(model)}
    for name in shapes:
        if name not in known:
            near = did_you_mean(name, known)
            raise InputError(f"shape: no input {name!r}; known: {sorted(known)}{near}")


def _axes(value: Any, where: str) -> list[_Axis] | None:
    """Of an input; None where not even their number is known."""
    if not value.type.HasField("tensor_type"):
        kind = value.type.WhichOneof("value") or "nothing"
        raise InputError(f"{where}: input {value.name} is no tensor but a {kind}")
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return [_Axis(d.dim_value if d.dim_value > 0 else None, d.dim_param) for d in tensor.shape.dim]


def _bind(symbols: dict[str, int], axes: Sequence[_Axis] | None, shape: Shape, where: str) -> None:
    """The symbols of an input have the sizes of its shape."""
    if axes is None:
        return
    if len(axes) != len(shape):
        raise InputError(f"{where} is {spelled(axes)}, the shape given is {spelled(shape)}")
    for axis, size in zip(axes, shape, strict=True):
        if axis.name and symbols.setdefault(axis.name, size) != size:
            was = symbols[axis.name]
            raise InputError(f"{where}: {axis.name} is {size} here and {was} in another input")


def _check_closed(value: Any, where: str) -> None:
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


def _inferred(model: Any) -> Any:
    """The shapes of all other values follow from those of the inputs: the old ones may be wrong."""
    del model.graph.value_info[:]
    for value in model.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    # What cannot be inferred (it contradicts itself, it has 2 GB) is left to who builds the model.
    with suppress(ValueError, RuntimeError):
        model.CopyFrom(extra("onnx").shape_inference.infer_shapes(model))
    return model
