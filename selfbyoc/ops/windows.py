"""Convolution and pooling as te.compute, in any layout that names its axes by letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import UnsupportedOp
from ..graph import OpCall
from ..tvm import dtype_of, te, tir
from ..tvm.starts import lowest
from ..tvm.types import PrimExpr
from .reduce import quotient_of

if TYPE_CHECKING:
    from ..tvm.types import Tensor


def letters(layout: str, call: OpCall, wanted: str) -> dict[str, int]:
    """Axis letter -> position, for a plain (not blocked) layout."""
    if sorted(layout) != sorted(wanted):
        raise UnsupportedOp(f"{call.name}: layout {layout!r}; expected an order of {wanted}")
    return {letter: position for position, letter in enumerate(layout)}


def _by_letter(index: Sequence[PrimExpr], axes: dict[str, int]) -> dict[str, PrimExpr]:
    return {letter: index[position] for letter, position in axes.items()}


def _at(tensor: Tensor, axes: dict[str, int], **where: PrimExpr) -> PrimExpr:
    ordered = sorted(axes, key=axes.__getitem__)
    return tensor(*(where[letter] for letter in ordered))


def _padded(
    x: Tensor,
    axes: dict[str, int],
    pads: Sequence[int],
    fill: PrimExpr,
    strides: Sequence[int],
    name: str,
) -> tuple[Tensor, dict[str, int]]:
    """A padded copy with its columns split by stride phase: [..., W/stride] of phase 0, then of
    phase 1, ...

    A strided convolution then reads neighbouring columns from neighbouring addresses, as vectors
    want it. The result has one axis more, "F" for the phase, unless the stride is 1.
    """
    top, left, bottom, right = pads
    step = strides[1]
    height, width = int(x.shape[axes["H"]]), int(x.shape[axes["W"]])
    if step == 1 and not any(pads):
        return x, axes
    order = sorted(axes, key=axes.__getitem__)
    new_order = (
        order if step == 1 else [*order[: order.index("H")], "F", *order[order.index("H") :]]
    )
    extent = {letter: int(x.shape[axes[letter]]) for letter in order}
    extent |= {"H": height + top + bottom, "W": -(-(width + left + right) // step), "F": step}
    new_axes = {letter: i for i, letter in enumerate(new_order)}

    def element(*i: PrimExpr) -> PrimExpr:
        at = _by_letter(i, new_axes)
        column = at["W"] if step == 1 else at["W"] * step + at["F"]
        inside = tir.all(
            at["H"] >= top, at["H"] < height + top, column >= left, column < width + left
        )
        where = {**at, "H": at["H"] - top, "W": column - left}
        return tir.if_then_else(inside, _at(x, axes, **{k: where[k] for k in axes}), fill)

    return te.compute([extent[letter] for letter in new_order], element, name=name), new_axes


def _window(
    x: Tensor,
    axes: dict[str, int],
    strides: Sequence[int],
    at: dict[str, PrimExpr],
    rows: PrimExpr,
    columns: PrimExpr,
    **more: PrimExpr,
) -> PrimExpr:
    """Read a padded tensor under a window at output position (H, W), `rows` down and `columns`
    along.
    """
    where = {**at, **more, "H": at["H"] * strides[0] + rows}
    if "F" not in axes:
        where["W"] = at["W"] * strides[1] + columns
        return _at(x, axes, **{k: where[k] for k in axes})
    where["F"] = tir.floormod(columns, strides[1])
    where["W"] = at["W"] + tir.floordiv(columns, strides[1])
    return _at(x, axes, **{k: where[k] for k in axes})


def conv2d(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """Grouped, strided, dilated convolution of `x` and `weight`."""
    x, weight = ins
    a = call.attrs
    axes = letters(a["data_layout"], call, "NCHW")
    kernel = letters(a["kernel_layout"], call, "OIHW")
    out_axes = letters(a["out_layout"] or a["data_layout"], call, "NCHW")
    size = {letter: int(weight.shape[position]) for letter, position in kernel.items()}
    dtype = call.outputs[0].dtype
    fill = tir.const(a.get("pad_value", 0), dtype_of(x))
    padded, axes = _padded(x, axes, a["padding"], fill, a["strides"], f"{call.name}_pad")
    rc = te.reduce_axis((0, size["I"]), name="rc")
    ry = te.reduce_axis((0, size["H"]), name="ry")
    rx = te.reduce_axis((0, size["W"]), name="rx")
    per_group = size["O"] // a["groups"]

    def element(*i: PrimExpr) -> PrimExpr:
        at = _by_letter(i, out_axes)
        channel = rc if a["groups"] == 1 else tir.floordiv(at["C"], per_group) * size["I"] + rc
        rows, columns = ry * a["dilation"][0], rx * a["dilation"][1]
        data = _window(padded, axes, a["strides"], at, rows, columns, C=channel)
        factor = _at(weight, kernel, O=at["C"], I=rc, H=ry, W=rx)
        return te.sum(data.astype(dtype) * factor.astype(dtype), axis=[rc, ry, rx])

    return te.compute(call.outputs[0].shape, element, name=call.name)


def _pool_padding(x: Tensor, axes: dict[str, int], call: OpCall) -> tuple[int, int, int, int]:
    """The padding with what `ceil_mode` adds below and on the right, so that every window is
    whole.
    """
    a = call.attrs
    top, left, bottom, right = a["padding"]
    out = call.outputs[0].shape

    def reach(letter: str, n: int) -> int:
        span = (a["pool_size"][n] - 1) * a["dilation"][n] + 1
        return (out[axes[letter]] - 1) * a["strides"][n] + span

    down = reach("H", 0) - int(x.shape[axes["H"]]) - top
    along = reach("W", 1) - int(x.shape[axes["W"]]) - left
    return top, left, max(bottom, down), max(right, along)


def max_pool2d(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """The largest element under each window; padding never wins."""
    (x,) = ins
    axes = out_axes = letters(call.attrs["layout"], call, "NCHW")
    strides, dilation, size = (call.attrs[k] for k in ("strides", "dilation", "pool_size"))
    pads = _pool_padding(x, axes, call)
    padded, axes = _padded(x, axes, pads, lowest(dtype_of(x)), strides, f"{call.name}_pad")
    ry = te.reduce_axis((0, size[0]), name="ry")
    rx = te.reduce_axis((0, size[1]), name="rx")

    def element(*i: PrimExpr) -> PrimExpr:
        at = _by_letter(i, out_axes)
        data = _window(padded, axes, strides, at, ry * dilation[0], rx * dilation[1])
        return te.max(data, axis=[ry, rx])

    return te.compute(call.outputs[0].shape, element, name=call.name)


def window_count(call: OpCall, height: int, width: int) -> Callable[[PrimExpr, int], PrimExpr]:
    """What an avg_pool2d divides by, on axis n: (place of the result, n) -> elements. Under
    ceil_mode windows may reach past the padding; that part never counts. One that lies outside
    altogether counts as one element, of zero.
    """
    a, extents = call.attrs, (height, width)
    out = [call.outputs[0].shape[a["layout"].index(letter)] for letter in "HW"]
    pads = a["padding"] if a["count_include_pad"] else (0, 0, 0, 0)

    def counted(at: PrimExpr, n: int) -> PrimExpr:
        low, high = -pads[n], extents[n] + pads[2 + n]
        first = at * a["strides"][n] - a["padding"][n]
        count = tir.Min(first + a["pool_size"][n], high) - tir.Max(first, low)
        start = -a["padding"][n]
        last = start + (out[n] - 1) * a["strides"][n]
        is_inside = start + a["pool_size"][n] > low and last < high
        return count if is_inside else tir.Max(count, 1)

    return counted


def window_sums(x: Tensor, call: OpCall) -> Tensor:
    """The sum under each window of a pool, to which padding adds nothing."""
    a = call.attrs
    axes = out_axes = letters(a["layout"], call, "NCHW")
    if tuple(a["dilation"]) != (1, 1):
        raise UnsupportedOp(f"{call.name}: avg_pool2d with dilation {a['dilation']}")
    pads, zero = _pool_padding(x, axes, call), tir.const(0, dtype_of(x))
    padded, axes = _padded(x, axes, pads, zero, a["strides"], f"{call.name}_pad")
    ry = te.reduce_axis((0, a["pool_size"][0]), name="ry")
    rx = te.reduce_axis((0, a["pool_size"][1]), name="rx")

    def total(*i: PrimExpr) -> PrimExpr:
        at = _by_letter(i, out_axes)
        return te.sum(_window(padded, axes, a["strides"], at, ry, rx), axis=[ry, rx])

    return te.compute(call.outputs[0].shape, total, name=f"{call.name}_sum")


def avg_pool2d(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """The mean under each window, over the elements inside the image or over all of the padding
    too.
    """
    (x,) = ins
    axes = letters(call.attrs["layout"], call, "NCHW")
    total = window_sums(x, call)
    counted = window_count(call, *(int(x.shape[axes[letter]]) for letter in "HW"))

    def mean(*i: PrimExpr) -> PrimExpr:
        at = _by_letter(i, axes)
        return quotient_of(total(*i), counted(at["H"], 0) * counted(at["W"], 1))

    return te.compute(call.outputs[0].shape, mean, name=call.name)
