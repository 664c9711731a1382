"""Which inputs of an ONNX model a caller gives. Before IR version 4 every weight had to be an input
too, with its value as a default; those files are all that Caffe2 and the old exporters wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..common.optional import extra
from ..errors import InputError, did_you_mean

if TYPE_CHECKING:
    import onnx

_FIRST = 4  # IR version that lets an initializer be a constant


def real_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that a caller gives: those without a value in the file."""
    weights = _initializers(model.graph)
    return [value for value in model.graph.input if value.name not in weights]


def check_initializers(models: Sequence[onnx.ModelProto], inputs: Collection[str]) -> None:
    """Each name is that of an initializer or an input of some model, or an InputError says so."""
    if isinstance(inputs, str):
        raise InputError(f"inputs: expected names of initializers, found the text {inputs!r}")
    known = {name for model in models for name in _initializers(model.graph)}
    known |= {value.name for model in models for value in model.graph.input}
    for name in inputs:
        if name not in known:
            near = did_you_mean(name, known)
            raise InputError(f"inputs: no initializer {name!r} in the model{near}")


def keep_constants(model: onnx.ModelProto, inputs: Collection[str]) -> None:
    """Make every initializer of a model a constant, but for those of these names: they become
    inputs without a default. Names that the model does not have are left out.
    """
    graph = model.graph
    asked = set(inputs)
    _drop(graph.input, _initializers(graph) - asked)
    there = {value.name for value in graph.input}
    make = extra("onnx").helper.make_tensor_value_info
    graph.input.extend(
        make(t.name, t.data_type, list(t.dims))
        for t in graph.initializer
        if t.name in asked and t.name not in there
    )
    _drop(graph.initializer, asked)
    model.ir_version = max(model.ir_version, _FIRST)


def _initializers(graph: onnx.GraphProto) -> set[str]:
    return {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}


def _drop(values: Any, names: Collection[str]) -> None:
    for n in reversed(range(len(values))):
        if values[n].name in names:
            del values[n]
