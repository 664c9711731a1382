"""Is an ONNX model what it may be: its names are texts, and its tensors hold what their shapes say.

ONNX has no checksum: of a damaged file nothing but this shows, and all who read it later, here and
in other packages, take it for granted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...common.optional import extra
from ...errors import InputError
from .graph import Graph, Message

if TYPE_CHECKING:
    import onnx

# Bytes of an element, and the field that has it where raw_data does not; of other types nobody
# computes anything.
_TYPES = {
    "FLOAT": (4, "float_data"), "DOUBLE": (8, "double_data"), "FLOAT16": (2, "int32_data"),
    "BFLOAT16": (2, "int32_data"), "BOOL": (1, "int32_data"), "INT8": (1, "int32_data"),
    "UINT8": (1, "int32_data"), "INT16": (2, "int32_data"), "UINT16": (2, "int32_data"),
    "INT32": (4, "int32_data"), "INT64": (8, "int64_data"), "UINT32": (4, "uint64_data"),
    "UINT64": (8, "uint64_data"),
}  # fmt: skip
_LARGE = 1 << 26  # elements


def check_sound(model: onnx.ModelProto, what: str) -> None:
    """Raise InputError, with the place in the model, where it is not; `what` begins the text."""
    try:
        for place, message in _messages(model):
            if _is_tensor(message):
                _check_tensor(message, f"{place} {message.name!r}")
            else:
                _check_texts(message, place)
                _check_reference(message, place)
    except ValueError as err:
        raise InputError(f"{what}: {err}") from err


def check_dense(model: onnx.ModelProto, name: str) -> None:
    """Raises InputError for a sparse tensor that is read: TVM's frontends read none, and ONNX
    Runtime would make it dense, of whatever size it claims. Of one that nobody reads, too, where it
    claims gigabytes.
    """
    read = Graph(model).read
    for place, message in _messages(model):
        if message.DESCRIPTOR.name != "SparseTensorProto":
            continue
        is_unread = place.endswith("sparse_initializer") and message.values.name not in read
        if not is_unread or math.prod(message.dims) > _LARGE:
            told = f"{place} {message.values.name!r}, {list(message.dims)}"
            text = "expected a dense tensor, found a sparse one; write it as a dense one"
            raise InputError(f"{name}: {told}: {text}")


def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """All of them: weights, and those in attributes."""
    return (found for _, found in _messages(model) if _is_tensor(found))


def _is_tensor(message: Message) -> bool:
    return bool(message.DESCRIPTOR.name == "TensorProto")


def _messages(model: onnx.ModelProto) -> Iterator[tuple[str, Message]]:
    """All that it consists of, outer ones first, and where they are. Of a tensor nothing is asked
    that would copy it.
    """
    waiting = [("model", model)]
    while waiting:  # no recursion: they may be nested as deep as protobuf lets them
        place, found = waiting.pop()
        yield place, found
        if _is_tensor(found):
            continue
        for field, value in found.ListFields():
            if field.message_type is not None:
                inner = value if hasattr(value, "__len__") else [value]
                waiting += [(f"{place}.{field.name}", each) for each in inner]


def _check_texts(message: Message, place: str) -> None:
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            for text in [value] if isinstance(value, (str, bytes)) else value:
                _check_text(text, f"{place}.{field.name}")


def _check_reference(message: Message, place: str) -> None:
    """Only a function's nodes may take an attribute from whoever calls it."""
    is_attribute = message.DESCRIPTOR.name == "AttributeProto"
    if is_attribute and message.ref_attr_name and not place.startswith("model.functions"):
        text = f"{message.name!r} stands for {message.ref_attr_name!r} of a function"
        raise ValueError(f"{place} {text}, and is in none")


def _check_text(text: object, place: str) -> None:
    if not isinstance(text, str):  # so protobuf hands out what is no text
        raise ValueError(f"{place} is no UTF-8: {text!r:.60}")


def _check_tensor(tensor: onnx.TensorProto, place: str) -> None:
    types = extra("onnx").TensorProto
    _check_text(tensor.name, f"{place}.name")
    if tensor.data_type not in types.DataType.values():
        raise ValueError(f"{place} has elements of type {tensor.data_type}, which ONNX has not")
    if min(tensor.dims, default=0) < 0:
        raise ValueError(f"{place} has the shape {list(tensor.dims)}")
    kind, count = types.DataType.Name(tensor.data_type), math.prod(tensor.dims)
    if tensor.data_location == types.EXTERNAL or kind not in _TYPES:
        return
    size, field = _TYPES[kind]
    is_raw = tensor.HasField("raw_data")
    found = len(tensor.raw_data) if is_raw else len(getattr(tensor, field))
    expected = count * size if is_raw else count
    if found != expected:
        text = (
            f"{kind.lower()}{list(tensor.dims)}, has {found:,} {'bytes' if is_raw else 'numbers'}"
        )
        raise ValueError(f"{place}, {text}; expected {expected:,}")
