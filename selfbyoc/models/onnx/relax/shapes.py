"""Ops that take sizes: as expressions of the inputs' sizes, where they follow from these
(known.py); else as new symbols, as those of ops whose results nobody can foresee. The
virtual machine looks whether they fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from ....errors import InputError
from ....ir.relax import Constant
from ....tvm import tir
from ....tvm.types import Attrs, BlockBuilder, Expr
from ...relax.algebra import Algebra, Extent
from ...relax.one_size import of_as_many, of_one_size_or_1, with_sizes
from .elements import Known, as_whole


@dataclass(frozen=True)
class Reading:
    """What a converter works with: TVM's builder, and what is known of a node's inputs."""

    builder: BlockBuilder
    algebra: Algebra
    known: Sequence[Known | None]

    def numbers(self, place: int) -> list[Extent] | None:
        """The elements of an input of one axis, or of none, if all are known."""
        known = self.known[place] if place < len(self.known) else None
        return None if known is None else list(known.elements.ravel().tolist())

    def is_constant(self, *places: int) -> bool:
        """Whether these inputs hold numbers alone; TVM's frontend reads these right."""
        known = [self.known[p] for p in places if p < len(self.known)]
        return all(k is None or k.is_constant for k in known)


def _reshape(at: Reading, inputs: Sequence[Expr], attributes: Attrs) -> Expr | None:
    """As many elements as there are, or the call ends in an error."""
    data, wanted = inputs[0], at.numbers(1)
    keeps = not attributes.get("allowzero", 0)
    if wanted is None:
        return _reshaped_as_told(at.builder, data, inputs[1], keeps) if is_data(inputs[1]) else None
    extents = extents_of(data)
    if all(isinstance(e, int) for e in (*extents, *wanted)):
        return None
    sizes = [
        extents[n] if e == 0 and isinstance(e, int) and keeps else e for n, e in enumerate(wanted)
    ]
    if any(isinstance(e, int) and e == -1 for e in sizes):
        known = [e for e in sizes if not (isinstance(e, int) and e == -1)]
        rest = at.algebra.shared(extents, known)
        sizes = [rest if isinstance(e, int) and e == -1 else e for e in sizes]
    return of_as_many(at.builder, at.algebra, data, sizes)


def _reshaped_as_told(builder: BlockBuilder, data: Expr, wanted: Expr, keeps: bool) -> Expr:
    emit, extents = builder.emit, extents_of(data)
    wanted, count = as_int64(builder, wanted), _length(wanted)
    if keeps:
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


def _expand(at: Reading, inputs: Sequence[Expr], attributes: Attrs) -> Expr:
    """Axes of 1 become as long as it says. Of an axis whose size is open, and not known to be the
    one asked for, elements are taken over and over, which are those there, or the only one.
    """
    (data, wanted), builder, emit = inputs, at.builder, at.builder.emit
    extents, sizes = extents_of(data), at.numbers(1)
    if sizes is None and not is_data(wanted):
        return None
    if sizes is None:
        shape = symbols(builder, as_int64(builder, wanted), "size")
        sizes = [int(e) if isinstance(e, tir.IntImm) else e for e in shape.values]
    rank = max(len(extents), len(sizes))
    old: list[Extent] = [1] * (rank - len(extents)) + extents
    sizes = [1] * (rank - len(sizes)) + sizes
    x = data if rank == len(extents) else emit(relax.op.reshape(data, relax.ShapeExpr(old)))
    for axis, (extent, size) in enumerate(zip(old, sizes, strict=True)):
        if isinstance(extent, int) or _is_kept(at.algebra, extent, size):
            continue
        both = at.algebra.chosen(size == 1, extent, size)
        places = of_one_size_or_1(builder, _arange(builder, both), x, axis)
        places = relax.op.floor_mod(places, as_tensor(builder, [extent]))
        x = emit(relax.op.take(x, emit(places), axis))
    now = extents_of(x)
    whole = [s if isinstance(e, int) and e == 1 else e for e, s in zip(now, sizes, strict=True)]
    if any(isinstance(w, int) and w == -1 for w in whole):
        whole = [
            e if isinstance(w, int) and w == -1 else w for e, w in zip(now, whole, strict=True)
        ]
    return relax.op.broadcast_to(x, relax.ShapeExpr(whole))


def _is_kept(algebra: Algebra, extent: Extent, size: Extent) -> bool:
    is_one = isinstance(size, int) and size in (1, -1)
    return is_one or algebra.are_equal(extent, size)


def _arange(builder: BlockBuilder, count: Extent) -> Expr:
    """The numbers from 0 below a size that is an expression."""
    if isinstance(count, int):
        return relax.const(np.arange(count), "int64")
    (size,) = symbols(builder, as_tensor(builder, [count]), "size").values
    return builder.emit(relax.op.arange(0, size, 1, "int64"))


def _filled(at: Reading, inputs: Sequence[Expr], attributes: Attrs) -> Expr:
    """A ConstantOfShape."""
    sizes = at.numbers(0)
    if sizes is None and not is_data(inputs[0]):
        return None
    from onnx.numpy_helper import to_array

    value = to_array(attributes["value"]).reshape(()) if "value" in attributes else 0.0
    dtype = str(getattr(value, "dtype", "float32"))
    if sizes is not None:
        shape = relax.ShapeExpr(sizes)
    else:
        shape = symbols(at.builder, as_int64(at.builder, inputs[0]), "size")
    return relax.op.broadcast_to(relax.const(value, dtype), shape)


def _range(at: Reading, inputs: Sequence[Expr], attributes: Attrs) -> Expr:
    """Numbers from and to an expression, in whole steps; of floats too."""
    given = [None if k is None else as_whole(k) for k in at.known]
    if at.is_constant(0, 1, 2) or any(g is None for g in given):
        return None
    first, end, step = (g.elements.item() for g in given if g is not None)
    if not isinstance(step, int) or step == 0:
        return None
    dtype = at.known[0].dtype if at.known[0] is not None else "int64"
    count = at.algebra.most(
        at.algebra.quotient(end - first + step - (1 if step > 0 else -1), step), 0
    )
    numbers = at.builder.emit(relax.op.arange(0, count, 1, "int64"))
    if step != 1:
        numbers = at.builder.emit(relax.op.multiply(numbers, relax.const(step, "int64")))
    if not (isinstance(first, int) and first == 0):
        numbers = at.builder.emit(relax.op.add(numbers, as_tensor(at.builder, [first])))
    return numbers if dtype == "int64" else relax.op.astype(numbers, dtype)


def _slice(at: Reading, inputs: Sequence[Expr], attributes: Attrs) -> Expr | None:
    """Elements of an axis up to a size that is an expression."""
    starts, ends = at.numbers(1), at.numbers(2)
    is_told = all(
        at.numbers(n) is not None for n in (3, 4) if len(inputs) > n and inputs[n] is not None
    )
    if starts is None or ends is None or not is_told:
        return None
    extents, algebra = extents_of(inputs[0]), at.algebra
    axes = at.numbers(3) or list(range(len(starts)))
    steps = at.numbers(4) or [1] * len(starts)
    axes = [axis % len(extents) for axis in axes]
    open_sizes = (*starts, *ends, *(extents[axis] for axis in axes))
    if all(isinstance(e, int) for e in open_sizes) or any(step != 1 for step in steps):
        return None
    begins, stops, cut = [], [], []
    for axis, start, end in zip(axes, starts, ends, strict=True):
        begin, stop = (_clamped(algebra, place, extents[axis]) for place in (start, end))
        if isinstance(begin, int) and begin == 0 and algebra.are_equal(stop, extents[axis]):
            continue
        cut.append(axis)
        begins.append(begin)
        is_forward = algebra.holds(start >= 0) and algebra.holds(end >= start)
        stops.append(stop if is_forward else algebra.most(begin, stop))
    if not cut:
        return inputs[0]
    return relax.op.strided_slice(
        inputs[0], cut, begins, stops, [1] * len(cut), assume_inbound=True
    )


def _clamped(algebra: Algebra, place: Extent, extent: Extent) -> Extent:
    """A place along an axis, counted from its end if it is below 0, between 0 and the end."""
    from_end = algebra.simplest(place + extent)
    counted = algebra.chosen(algebra.simplest(place < 0), from_end, place)
    if isinstance(place, int) and place >= 2**31 - 1:
        return extent
    return algebra.least(algebra.most(counted, 0), extent)


def _squeezed(at: Reading, inputs: Sequence[Expr], attributes: Attrs) -> Expr | None:
    """Without axes of open sizes, which have to be 1."""
    axes = at.numbers(1) if len(inputs) > 1 and inputs[1] is not None else attributes.get("axes")
    if axes is None or not isinstance(inputs[0].ty, relax.TensorType):
        return None
    extents = extents_of(inputs[0])
    axes = [int(axis) % len(extents) for axis in axes]
    opened = [axis for axis in axes if not isinstance(extents[axis], int)]
    if not opened:
        return None
    for axis in opened:
        at.algebra.promise(extents[axis], 1)
    ones = [1 if axis in opened else extent for axis, extent in enumerate(extents)]
    return relax.op.squeeze(with_sizes(at.builder, inputs[0], ones), axes)


def is_data(value: object) -> bool:
    """Whether a value is a tensor and no constant."""
    return isinstance(getattr(value, "ty", None), relax.TensorType) and not isinstance(
        value, Constant
    )


def extents_of(x: Expr) -> list[Extent]:
    """The sizes of a tensor's axes."""
    shape = x.ty.shape
    if not isinstance(shape, relax.ShapeExpr):
        raise InputError("the number of axes of a value is not known")
    return [int(e) if isinstance(e, tir.IntImm) else e for e in shape.values]


def as_tensor(builder: BlockBuilder, extents: Sequence[Extent]) -> Expr:
    """Sizes as a tensor of int64."""
    if all(isinstance(e, int) for e in extents):
        return relax.const(list(extents), "int64")
    return builder.emit(relax.op.shape_to_tensor(relax.ShapeExpr(list(extents))))


def as_int64(builder: BlockBuilder, x: Expr) -> Expr:
    """Integers as those of 64 bits."""
    return x if x.ty.dtype == "int64" else builder.emit(relax.op.astype(x, "int64"))


def symbols(builder: BlockBuilder, sizes: Expr, name: str) -> Expr:
    """A shape of new symbols, which are what a tensor of int64 holds."""
    shape = builder.emit(relax.op.tensor_to_shape(sizes))
    made = [tir.Var(f"{name}_{n}", "int64") for n in range(_length(sizes))]
    builder.match_cast(shape, relax.ShapeType(made))
    return relax.ShapeExpr(made)


def _length(x: Expr) -> int:
    """The number of elements of a tensor of one axis."""
    (count,) = extents_of(x)
    if not isinstance(count, int):
        raise InputError("a shape is computed whose number of axes is not known")
    return count


CONVERTERS = {
    "ConstantOfShape": _filled, "Expand": _expand, "Range": _range, "Reshape": _reshape,
    "Slice": _slice, "Squeeze": _squeezed,
}  # fmt: skip
