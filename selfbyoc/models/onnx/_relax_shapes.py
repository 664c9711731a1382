"""Shapes that are data: TVM's frontend (0.27) reads those that follow from the shapes of inputs.

What a model computes becomes new symbols, as those of ops whose results nobody can foresee. The
virtual machine looks whether they fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import relax

from ..._tvm import tir
from ...errors import InputError
from ...ir._relax import Constant

Extent = Any  # int, or an expression of TIR


def _reshape(builder: Any, inputs: Sequence[Any], attributes: Any) -> Any:
    """To a shape that is computed; as many elements as there are, or the call ends in an error."""
    data, wanted = inputs[0], inputs[1]
    if not is_data(wanted) or isinstance(data, relax.ShapeExpr):
        return None
    emit, extents = builder.emit, extents_of(data)
    wanted, count = as_int64(builder, wanted), _length(wanted)
    if not attributes.get("allowzero", 0):
        kept = [extents[n] if n < len(extents) else 0 for n in range(count)]
        is_kept = relax.op.equal(wanted, relax.const(0, "int64"))
        wanted = emit(relax.op.where(is_kept, as_tensor(builder, kept), wanted))
    total = as_tensor(builder, [math.prod(extents)])
    is_rest = emit(relax.op.less(wanted, relax.const(0, "int64")))
    known = emit(relax.op.prod(relax.op.where(is_rest, relax.const(1, "int64"), wanted)))
    rest = relax.op.floor_divide(total, relax.op.maximum(known, relax.const(1, "int64")))
    wanted = emit(relax.op.where(is_rest, rest, wanted))
    found = emit(relax.op.prod(wanted, 0, keepdims=True))
    builder.match_cast(emit(relax.op.tensor_to_shape(found)), relax.ShapeType([math.prod(extents)]))
    return relax.op.reshape(data, symbols(builder, wanted, "size"))


def _expand(builder: Any, inputs: Sequence[Any], attributes: Any) -> Any:
    """To a shape that is computed. Axes of 1 become as long as it says; of an axis whose size is
    open, elements are taken over and over, which are those there, or the only one.
    """
    data, wanted = inputs
    if not is_data(wanted):
        return None
    emit, extents, count = builder.emit, extents_of(data), _length(wanted)
    rank = max(len(extents), count)
    old: list[Extent] = [1] * (rank - len(extents)) + extents
    if count < rank:
        ones = as_tensor(builder, [1] * (rank - count))
        wanted = emit(relax.op.concat([ones, as_int64(builder, wanted)], axis=0))
    sizes = symbols(builder, as_int64(builder, wanted), "size").values
    x = data if rank == len(extents) else emit(relax.op.reshape(data, relax.ShapeExpr(old)))
    for axis, (extent, size) in enumerate(zip(old, sizes, strict=True)):
        if not isinstance(extent, int):
            both = tir.if_then_else(size == 1, extent, size)
            places = relax.op.floor_mod(_arange(builder, both), as_tensor(builder, [extent]))
            x = emit(relax.op.take(x, emit(places), axis))
    now = extents_of(x)
    whole = [s if e == 1 else e for e, s in zip(now, sizes, strict=True)]
    return relax.op.broadcast_to(x, relax.ShapeExpr(whole))


def _arange(builder: Any, count: Extent) -> Any:
    """The numbers from 0 below a size that is an expression."""
    (size,) = symbols(builder, as_tensor(builder, [count]), "size").values
    return builder.emit(relax.op.arange(0, size, 1, "int64"))


def _filled(builder: Any, inputs: Sequence[Any], attributes: Any) -> Any:
    """A ConstantOfShape of a shape that is computed."""
    wanted = inputs[0]
    if not is_data(wanted):
        return None
    from onnx.numpy_helper import to_array

    value = to_array(attributes["value"]).reshape(()) if "value" in attributes else 0.0
    dtype = str(getattr(value, "dtype", "float32"))
    shape = symbols(builder, as_int64(builder, wanted), "size")
    return relax.op.broadcast_to(relax.const(value, dtype), shape)


def is_data(value: Any) -> bool:
    """Whether a value is neither a constant nor a shape that follows from those of inputs."""
    return isinstance(getattr(value, "ty", None), relax.TensorType) and not isinstance(
        value, Constant
    )


def extents_of(x: Any) -> list[Extent]:
    """The sizes of a tensor's axes."""
    shape = x.ty.shape
    if not isinstance(shape, relax.ShapeExpr):
        raise InputError("the number of axes of a value is not known")
    return [int(e) if isinstance(e, tir.IntImm) else e for e in shape.values]


def as_tensor(builder: Any, extents: Sequence[Extent]) -> Any:
    """Sizes as a tensor of int64."""
    if all(isinstance(e, int) for e in extents):
        return relax.const(list(extents), "int64")
    return builder.emit(relax.op.shape_to_tensor(relax.ShapeExpr(list(extents))))


def as_int64(builder: Any, x: Any) -> Any:
    """Integers as those of 64 bits."""
    return x if x.ty.dtype == "int64" else builder.emit(relax.op.astype(x, "int64"))


def symbols(builder: Any, sizes: Any, name: str) -> Any:
    """A shape of new symbols, which are what a tensor of int64 holds."""
    shape = builder.emit(relax.op.tensor_to_shape(sizes))
    made = [tir.Var(f"{name}_{n}", "int64") for n in range(_length(sizes))]
    builder.match_cast(shape, relax.ShapeType(made))
    return relax.ShapeExpr(made)


def _length(x: Any) -> int:
    """The number of elements of a tensor of one axis."""
    (count,) = extents_of(x)
    if not isinstance(count, int):
        raise InputError("a shape is computed whose number of axes is not known")
    return count


CONVERTERS = {"ConstantOfShape": _filled, "Expand": _expand, "Reshape": _reshape}
