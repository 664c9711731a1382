"""Ops that move data: reshape, transpose, concatenate, split, tile, broadcast_to, embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import OpCall
from ..tvm import GENERATION, te, tir, topi
from ..tvm.types import Attr, PrimExpr
from .attrs import Raw, only, plain
from .kind import OWN, Array, Form, OpKind, Typed, elementwise, form, in_both

if TYPE_CHECKING:
    from ..tvm.types import Tensor


_RESHAPES = tuple(Form(name, by_type=True) for name in ("reshape", "expand_dims", "squeeze"))


def _reshape(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    return topi.reshape(ins[0], call.attrs["shape"])


def _split(ins: Sequence[Tensor], call: OpCall) -> list[Tensor]:
    (x,), axis = ins, call.attrs["axis"] % len(ins[0].shape)

    def part(index: int) -> Tensor:
        start = sum(v.shape[axis] for v in call.outputs[:index])
        return te.compute(
            call.outputs[index].shape,
            lambda *i: x(*(v + start if n == axis else v for n, v in enumerate(i))),
            name=f"{call.name}_{index}",
        )

    return [part(index) for index in range(len(call.outputs))]


def _numpy_split(ins: Sequence[Array], call: OpCall) -> list[Array]:
    axis = call.attrs["axis"]
    ends = np.cumsum([value.shape[axis] for value in call.outputs])
    return np.split(ins[0], ends[:-1], axis=axis)


def _transpose(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    (x,) = ins
    axes = call.attrs["axes"]
    shape = [x.shape[a] for a in axes]
    where = {a: i for i, a in enumerate(axes)}
    return te.compute(shape, lambda *i: x(*(i[where[a]] for a in range(len(axes)))), name=call.name)


def _tile(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    (x,), repeats = ins, call.attrs["repeats"]
    more = max(0, len(repeats) - len(x.shape))
    whole = [*[1] * more, *x.shape]
    times = [*[1] * (len(whole) - len(repeats)), *repeats]

    def element(*i: PrimExpr) -> PrimExpr:
        return x(*(tir.floormod(*each) for each in zip(i[more:], x.shape, strict=True)))

    shape = [extent * n for extent, n in zip(whole, times, strict=True)]
    return te.compute(shape, element, name=call.name)


def _concatenate(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    axis = call.attrs["axis"] % len(ins[0].shape)
    starts = [sum(int(t.shape[axis]) for t in ins[:n]) for n in range(len(ins))]

    def element(*i: PrimExpr) -> PrimExpr:
        def read(n: int) -> PrimExpr:
            return ins[n](*i[:axis], i[axis] - starts[n], *i[axis + 1 :])

        found = read(0)
        for n in range(1, len(ins)):
            found = tir.if_then_else(i[axis] >= starts[n], read(n), found)
        return found

    return te.compute(call.outputs[0].shape, element, name=call.name)


def _rotate_half(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    (x,), half = ins, int(ins[0].shape[-1]) // 2

    def element(*i: PrimExpr) -> PrimExpr:
        lead, at = i[:-1], i[-1]
        other = tir.const(0, x.dtype) - x(*lead, at + half)
        return tir.if_then_else(at < half, other, x(*lead, at - half))

    return te.compute(x.shape, element, name=call.name)


def _types_of_halves(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    ((shape, dtype),) = ins
    last = shape[-1] if shape else 1
    if not isinstance(last, (int, tir.IntImm)) or int(last) % 2:
        raise ValueError(f"expected a last axis of two halves, found {list(map(str, shape))}")
    return [(shape, dtype)]


def _numpy_rotate_half(ins: Sequence[Array], call: OpCall) -> Array:
    first, second = np.split(ins[0], 2, axis=-1)
    return np.concatenate((-second, first), axis=-1)


def row_of(ids: Tensor, place: Sequence[PrimExpr], units: int) -> PrimExpr:
    """Which row of a table of `units` an id says; of one out of range the nearest."""
    found = ids(*place)
    least, most = (tir.const(n, ids.dtype) for n in (0, units - 1))
    return tir.Max(tir.Min(found, most), least).astype("int32")


def _types_of_rows(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    (table, dtype), (places, of_places) = ins
    if len(table) != 2 or dtype != "float32" or not of_places.startswith(("int", "uint")):
        text = "expected a table [units, depth] of float32 and ids of integers"
        raise ValueError(f"{text}, found {len(table)} axes of {dtype} and {of_places}")
    return [((*places, table[1]), dtype)]


def _embedding(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    table, ids = ins
    units, depth = map(int, table.shape)

    def element(*i: PrimExpr) -> PrimExpr:
        return table(row_of(ids, i[:-1], units), i[-1])

    return te.compute((*ids.shape, depth), element, name=call.name)


def _numpy_embedding(ins: Sequence[Array], call: OpCall) -> Array:
    table, ids = ins
    found: Array = table[np.clip(ids.astype(np.int64), 0, len(table) - 1)]
    return found


def _pad_widths(raw: Raw) -> dict[str, Attr]:
    """(before, after) of each axis; Relax has them in a row, and the value as an attribute."""
    flat = list(np.ravel(plain(raw["pad_width"])))
    widths = tuple((int(a), int(b)) for a, b in zip(flat[::2], flat[1::2], strict=True))
    found = {"pad_width": widths, "pad_mode": plain(raw["pad_mode"])}
    return found if GENERATION == "relay" else {**found, "pad_value": plain(raw["pad_value"])}


KINDS = (
    OpKind(
        "broadcast_to",
        elementwise(lambda a: a),
        lambda ins, call: np.broadcast_to(ins[0], call.attrs["shape"]),
        read_attrs=("shape",),
        **in_both("broadcast_to", by_type=True),
        fuses="broadcast",
        takes="x",
        doc="x repeated along axes of one element and along new first axes, as NumPy's.",
    ),
    OpKind(
        "concatenate",
        _concatenate,
        lambda ins, call: np.concatenate(ins, axis=call.attrs["axis"]),
        inputs=None,
        attrs={"axis": 1},
        relay=form("concatenate", only("axis")),
        relax=form("concat", only("axis")),
        fuses="injective",
        takes="tensors",
        doc="A list of tensors, or `many(branch)`, one after the other along an axis.",
    ),
    OpKind(
        "embedding",
        _embedding,
        _numpy_embedding,
        inputs=2,
        types=_types_of_rows,
        **in_both(OWN + "embedding"),
        fuses=("injective", "opaque"),
        takes="table ids",
        doc="The row table[id] for each of `ids`, of a table [units, depth] that a product "
        "multiplies by, too, or that has few bits. An id out of range is the nearest one.",
    ),
    OpKind(
        "reshape",
        _reshape,
        lambda ins, call: ins[0].reshape(call.attrs["shape"]),
        read_attrs=("shape",),
        relay=(*_RESHAPES, Form("nn.batch_flatten")),
        relax=(*_RESHAPES, Form("flatten"), Form("nn.batch_flatten")),
        fuses="injective",
        takes="x",
        doc="The elements of x in their order, in another shape.",
    ),
    OpKind(
        "rotate_half",
        _rotate_half,
        _numpy_rotate_half,
        types=_types_of_halves,
        **in_both(OWN + "rotate_half"),
        fuses="injective",
        takes="x",
        doc="(a, b) -> (-b, a) of the halves of the last axis: what rotary embedding multiplies by "
        "sines.",
    ),
    OpKind(
        "split",
        _split,
        _numpy_split,
        read_attrs=("indices_or_sections", "axis"),
        **in_both("split", only("indices_or_sections", "axis")),
        fuses="injective",
        takes="x",
        doc="x cut along an axis into several results, taken by index: `op.split(x, ...)[0]`.",
    ),
    OpKind(
        "tile",
        _tile,
        lambda ins, call: np.tile(ins[0], call.attrs["repeats"]),
        read_attrs=("repeats",),
        relay=form("tile", lambda raw: {"repeats": plain(raw["reps"])}),
        relax=form("tile", only("repeats")),
        fuses=("broadcast", "injective"),
        takes="x",
        doc="The whole of x so many times along each axis, as NumPy's.",
    ),
    OpKind(
        "transpose",
        _transpose,
        lambda ins, call: ins[0].transpose(call.attrs["axes"]),
        read_attrs=("axes",),
        relay=form("transpose", only("axes")),
        relax=form("permute_dims", only("axes")),
        fuses="injective",
        takes="x",
        doc="x with its axes in another order.",
    ),
    # Not in patterns; its axes may be reordered.
    OpKind("nn.pad", **in_both("nn.pad", _pad_widths), fuses="injective"),
    # Only ever read as others.
    OpKind("stack", inputs=None, relax=form("stack", only("axis")), fuses="injective"),
)
