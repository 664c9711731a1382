"""`from_onnx`: an ONNX model as users have it -> an IRModule."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.files import is_utf8
from ..common.interrupt import stopped
from ..common.optional import extra
from ..errors import (
    InputError,
    MissingExtra,
    ModelWarning,
    OutOfMemory,
    SelfbyocError,
    ToolError,
    one_line,
)
from ..partition.source_names import Names, named_weights, with_names
from ..tvm.types import IRModule
from .dim_names import symbols_of
from .generation import tvm_road
from .onnx.branches import resolved
from .onnx.claims import TooLarge
from .onnx.computing import computed
from .onnx.expanding import expanded
from .onnx.folding import contradiction, folded
from .onnx.graph import Graph
from .onnx.inference import BelowZero, about
from .onnx.masks import masks_of_ones
from .onnx.norms import FORMS as OF_RUNTIME
from .onnx.sound import check_dense, check_sound
from .onnx_model import import_onnx, load_onnx
from .real_inputs import check_initializers, keep_constants, real_inputs
from .shapes import LARGEST, Shape, check_known, give_shapes, give_sizes, open_inputs
from .sizes import Asked
from .sizes_of_onnx import with_known_sizes

if TYPE_CHECKING:
    import onnx


def from_onnx(
    model: str | Path | onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Collection[str] = (),
    sizes: Mapping[str, Asked] | None = None,
) -> IRModule:
    """An ONNX model, a file or a ModelProto, as an IRModule of the installed TVM; weights are
    constants.

    shapes   of inputs by name, `{"images": (1, 3, 224, 224)}`; a symbol has one size in all inputs.
             Sizes that nobody gives stay open, where TVM can import that.
    inputs   names of initializers that a caller gives: all others are constants, those too that
             the file lists as inputs, as before IR version 4.
    sizes    of symbols by name: a number, or the least and the largest (None: any) that inputs may
             have, `{"batch": 1, "seq": (1, 512)}`: another call is an error. Ranges on Relax

    Ops that TVM's frontend does not have are taken apart where ONNX defines them by others.
    What depends on small constants alone is computed first, shapes above all
    (models/onnx/folding.py).
    Placeholders of exporters (`?`, `None`, `unk__7`) are names of nothing: each place has a size
    and a name of its own, `images_2`.
    With a ModelWarning: a file that onnx's checker objects to, if ONNX Runtime opens it; shapes
    that give one symbol two sizes.

    Raises InputError where the file cannot be read, an input is not there or has other axes, TVM's
    frontend does not know an op, some size would be below 0, or a range is of no open size, empty,
    or beyond what the model itself is right for; MissingExtra without the package onnx.
    """
    name = Path(model).name if isinstance(model, (str, Path)) else "the model"
    with _typed(name):
        return _imported(model, name, shapes or {}, inputs, sizes or {})


@contextmanager
def _typed(name: str) -> Iterator[None]:
    """What onnx, protobuf, NumPy and TVM raise of an odd model, as errors of ours."""
    try:
        yield
    except SelfbyocError:
        raise
    except MemoryError as err:
        raise OutOfMemory(f"{name} asks for more memory than there is: {one_line(err)}") from err
    except Exception as err:  # of many kinds, wherever such a model is met first
        if stopped(err):
            raise
        raise InputError(f"{name} cannot be imported: {one_line(err)}") from err


def _imported(
    model: str | Path | onnx.ModelProto,
    name: str,
    shapes: Mapping[str, Sequence[int]],
    inputs: Collection[str],
    sizes: Mapping[str, Asked],
) -> IRModule:
    is_file = isinstance(model, (str, Path))
    by_path = is_file and is_utf8(str(model))  # onnx 1.23 takes no other names
    proto = load_onnx(model) if is_file else _copied(model)
    given = {key: _shape(key, shape) for key, shape in shapes.items()}
    check_initializers([proto], inputs)
    keep_constants(proto, inputs)
    check_known([proto], given)
    _check_types(proto, name)
    with about(name):
        proto, within = with_known_sizes(give_shapes(proto, given, name), sizes, name)
        names = _names(proto)
        proto = expanded(resolved(proto), tvm_road.onnx_ops())
        proto, notes = _ready(proto, _objection(str(model) if by_path else proto), name)
        names = replace(names, ones=masks_of_ones(Graph(proto)))
    try:
        most = {of: ends[1] for of, ends in within.items() if ends[1] is not None}
        mod = import_onnx(proto, name, most)
    except InputError as err:
        raise InputError("; ".join([str(err), *notes, *_hint(proto, name)])) from err
    for note in notes:
        warnings.warn(ModelWarning(f"{name}: {note}"), stacklevel=2)
    return with_names(tvm_road.limited(mod, within, name), names)


def _hint(proto: onnx.ModelProto, name: str) -> list[str]:
    """That shapes help, where the model can be read with some."""
    opened = open_inputs(proto)
    if not opened:
        return []
    known = give_sizes(_copied(proto), dict.fromkeys(symbols_of(proto), _SOME))
    with suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_onnx(known, name)
        return [f"its sizes are open: give {', '.join(opened)} a shape"]
    return []


def _names(proto: onnx.ModelProto) -> Names:
    """Of inputs, outputs and weights; weights that still lie in files beside it have none."""
    onnx = extra("onnx")
    found = (
        (each.name, onnx.numpy_helper.to_array(each))
        for each in proto.graph.initializer
        if each.data_type == onnx.TensorProto.FLOAT
        and each.data_location != onnx.TensorProto.EXTERNAL
        and len(each.dims) > 1
    )
    return Names(
        tuple(v.name for v in real_inputs(proto)),
        tuple(v.name for v in proto.graph.output),
        named_weights(found),
    )


def _copied(model: onnx.ModelProto) -> onnx.ModelProto:
    if not isinstance(model, extra("onnx").ModelProto):
        raise InputError(
            f"model: expected a path or an onnx.ModelProto, found {type(model).__name__}"
        )
    copy = type(model)()
    copy.CopyFrom(model)
    check_sound(copy, "the model is none of ONNX's")
    return copy


_SOME = 16  # a size to try whether a model that is refused can be read of known sizes
NO_NUMBERS = ("STRING", "COMPLEX64", "COMPLEX128")


def _check_types(proto: onnx.ModelProto, name: str) -> None:
    """Inputs and outputs are tensors of what TVM computes with, and there is an output."""
    types = extra("onnx").TensorProto.DataType
    check_dense(proto, name)
    if not proto.graph.output:
        raise InputError(f"{name}: it has no outputs; expected one or more")
    for side in ("input", "output"):
        for value in getattr(proto.graph, side):
            kind = value.type.WhichOneof("value") or "tensor_type"
            found = kind.removesuffix("_type")
            if kind == "tensor_type":
                code = value.type.tensor_type.elem_type
                found = types.Name(code) if code in types.values() else f"type {code}"
            is_known = found in types.keys() and (side, found) != ("input", "UNDEFINED")  # noqa: SIM118
            if kind != "tensor_type" or not is_known or found in NO_NUMBERS:
                text = f"{side} {value.name!r} is of {found}; expected a tensor of numbers or bools"
                raise InputError(f"{name}: {text}")


def _shape(name: str, shape: Sequence[int]) -> Shape:
    sizes = tuple(shape)
    if not all(type(size) is int and 0 < size <= LARGEST for size in sizes):
        expected = f"sizes of 1 to {LARGEST} for {name}"
        raise InputError(f"shapes: expected {expected}, found {shape!r:.200}")
    return sizes


def _objection(model: str | onnx.ModelProto) -> str:
    """What onnx's checker says against a model (by path: its weights may lie beside it)."""
    checker = extra("onnx").checker
    try:
        checker.check_model(model)
    except (ValueError, RuntimeError, checker.ValidationError) as err:
        return one_line(err)
    return ""


def _ready(proto: onnx.ModelProto, objection: str, name: str) -> tuple[onnx.ModelProto, list[str]]:
    """The model, folded, and what is to be said of it. Where ONNX Runtime does not open it: an
    error if onnx's checker objects too, else the model as it is, maybe with an op of one's own.
    """
    try:
        done = folded(proto)
    except (BelowZero, TooLarge):
        raise
    except (InputError, MissingExtra, ToolError) as err:
        objection = objection or contradiction(proto)
        if objection:
            text = f"{name} is no ONNX model that can be read: {objection}; {err}"
            raise InputError(text) from err
        return resolved(computed(proto)), [f"not folded by ONNX Runtime: {err}"]
    said = f"onnx's checker objects, ONNX Runtime opens it: {objection}"
    is_of_runtime = any(f"No Op registered for {op} " in objection for op in OF_RUNTIME)
    return done, [said] if objection and not is_of_runtime else []
