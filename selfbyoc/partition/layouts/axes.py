"""How the axes of an op may be reordered: what its inputs, outputs and attributes become.

An order says which old axis each new axis is: NHWC read as NCHW is (0, 3, 1, 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...graph import OpCall, Value
from ...ops import activations, elementwise
from ...ops.reduce import reduced_axes
from ...tvm.types import Attr

Order = tuple[int, ...]
Attrs = Callable[[Order], dict[str, Any]]

# Ops on elements that the vocabulary does not have; both TVMs call them so.
_OTHERS = (
    "ceil", "cos", "equal", "floor", "floor_divide", "greater", "greater_equal", "less",
    "less_equal", "logical_and", "logical_not", "logical_or", "not_equal", "sign", "sin", "where",
)  # fmt: skip
_OURS = (k.name for k in (*elementwise.KINDS, *activations.KINDS))
ON_ELEMENTS = frozenset({*_OURS, *_OTHERS}) - {"bias_add"}
KERNEL_LAYOUTS = {"NCHW": "OIHW", "NHWC": "HWIO"}
_OF_KIND = {"conv2d": KERNEL_LAYOUTS, "conv2d_transpose": {"NCHW": "IOHW"}}


@dataclass(frozen=True)
class Axes:
    """The axes that an op runs over. Each input and output lists which of them its own ones are.

    `attrs` are the attributes under an order; None: the op is called as it was (ops on elements,
    whose inputs of fewer axes get axes of extent 1). `allows` may refuse an order.
    `forced` is the only one. `weight` is the order of the second input under that.
    """

    rank: int
    inputs: tuple[Order, ...]
    outputs: tuple[Order, ...]
    attrs: Attrs | None = None
    allows: Callable[[Order], bool] = lambda order: True
    forced: Order | None = None
    weight: Order | None = None

    def input_order(self, index: int, order: Order) -> Order:
        """In which order an input is read."""
        if index == 1 and self.weight is not None:
            return self.weight
        return _restricted(self.inputs[index], order)

    def output_order(self, index: int, order: Order) -> Order:
        """In which order an output is written."""
        return _restricted(self.outputs[index], order)


def identity(rank: int) -> Order:
    """The axes as they are."""
    return tuple(range(rank))


def inverse(order: Order) -> Order:
    """The order that undoes another."""
    return tuple(map(order.index, range(len(order))))


def compose(first: Order, then: Order) -> Order:
    """Two transposes, one after the other, as one."""
    return tuple(first[axis] for axis in then)


def _restricted(own: Order, order: Order) -> Order:
    """The order of a tensor that has some of the axes."""
    return tuple(sorted(range(len(own)), key=lambda axis: order.index(own[axis])))


def following(own: Order, wanted: Order, order: Order) -> Order:
    """The op's order with the axes of one tensor as wanted, and the others where they were."""
    places = sorted(order.index(axis) for axis in own)
    new = list(order)
    for place, axis in zip(places, wanted, strict=True):
        new[place] = own[axis]
    return tuple(new)


def axes_of(call: OpCall, data_layout: str | None = None) -> Axes | None:
    """How an op's axes may be reordered; None: not at all.

    Convolutions move to `data_layout` alone, and only if it is given.
    """
    if call.kind in ON_ELEMENTS:
        return _on_elements(call)
    if call.kind in _OF_KIND:
        wanted = _OF_KIND[call.kind].get(data_layout or "")
        return None if data_layout is None or not wanted else _convolution(
            call, data_layout, wanted)  # fmt: skip
    rule = _RULES.get(call.kind)
    return None if rule is None else rule(call)


def _on_elements(call: OpCall) -> Axes | None:
    (output,) = call.outputs
    rank = output.ndim
    partial = [v for v in call.inputs if 0 < v.ndim < rank]
    if not all(v.is_static for v in partial) or any(v.ndim > rank for v in call.inputs):
        return None
    inputs = tuple(tuple(range(rank - v.ndim, rank)) for v in call.inputs)
    return Axes(rank, inputs, (identity(rank),))


def _of_numbers(call: OpCall) -> Axes | None:
    """An op on elements that reads numbers besides."""
    return None if any(value.ndim for value in call.inputs[1:]) else _on_elements(call)


def _same(call: OpCall, attrs: Attrs, **more: Any) -> Axes:
    """All inputs and outputs have the same axes."""
    every = identity(call.inputs[0].ndim)
    return Axes(
        len(every), (every,) * len(call.inputs), (every,) * len(call.outputs), attrs, **more
    )


def _along(call: OpCall) -> Axes:
    """Ops along one axis."""
    axis = call.attrs["axis"] % call.inputs[0].ndim
    return _same(call, lambda order: {**call.attrs, "axis": order.index(axis)})


def _pad(call: OpCall) -> Axes:
    """The widths go with their axes; Relay's second input is the value."""
    rank, widths = call.inputs[0].ndim, call.attrs["pad_width"]

    def attrs(order: Order) -> dict[str, Attr]:
        return {**call.attrs, "pad_width": tuple(widths[axis] for axis in order)}

    every, scalars = identity(rank), ((),) * (len(call.inputs) - 1)
    return Axes(rank, (every, *scalars), (every,), attrs)


def _softmax(call: OpCall) -> Axes:
    """Its axis stays where it is: a row of the last axis is fast, a column of the first is not."""
    axis = call.attrs["axis"] % call.inputs[0].ndim
    return _same(call, lambda order: dict(call.attrs), allows=lambda order: order[axis] == axis)


def _per_channel(call: OpCall) -> Axes:
    """bias_add, batch_norm, quantize, ...: vectors along one axis; of levels numbers, too."""
    rank = call.inputs[0].ndim
    axis = call.attrs["axis"] % max(1, rank)

    def own(values: Sequence[Value]) -> tuple[Order, ...]:
        return (identity(rank), *((axis,)[: value.ndim] for value in values[1:]))

    def attrs(order: Order) -> dict[str, Attr]:
        known = {n: v for n, v in call.attrs.items() if n not in ("training", "ties")}
        return {**known, "axis": order.index(axis)}

    return Axes(rank, own(call.inputs), own(call.outputs), attrs)


def _batch_norm(call: OpCall) -> Axes | None:
    return None if call.attrs.get("training") else _per_channel(call)


def _reduction(call: OpCall) -> Axes | None:
    rank = call.inputs[0].ndim
    gone, keeps = reduced_axes(call.attrs["axis"], rank), bool(call.attrs["keepdims"])
    left = tuple(a for a in range(rank) if keeps or a not in gone)
    shape = tuple(1 if a in gone else call.inputs[0].shape[a] for a in left)
    if shape != call.outputs[0].shape:  # Relay's `exclude`
        return None

    def attrs(order: Order) -> dict[str, Attr]:
        return {"axis": tuple(sorted(map(order.index, gone))), "keepdims": keeps}

    return Axes(rank, (identity(rank),), (left,), attrs)


def _letters(layout: str, order: Order) -> str:
    return "".join(layout[axis] for axis in order)


def _pool(call: OpCall) -> Axes | None:
    layout = call.attrs["layout"]
    if sorted(layout) != sorted("NCHW"):
        return None
    return _same(
        call,
        lambda order: {**call.attrs, "layout": _letters(layout, order)},
        allows=lambda order: _letters(layout, order) in (layout, "NCHW"),
    )


def _convolution(call: OpCall, data_layout: str, wanted: str) -> Axes | None:
    """To the layout that was asked for, the weight with it; one that is there already stays."""
    data, kernel = call.attrs["data_layout"], call.attrs["kernel_layout"]
    same = sorted(data) == sorted(data_layout) and sorted(kernel) == sorted("OIHW")
    if data == data_layout or call.attrs["out_layout"] != data or not same:
        return None
    channels = [v.shape[data.index("C")] for v in (call.inputs[0], call.outputs[0])]
    found = [call.inputs[1].shape[kernel.index(letter)] for letter in "IO"]
    of_group = "I" if call.kind == "conv2d" else "O"
    if None in channels:
        return None
    expected = [c // (call.attrs["groups"] if letter == of_group else 1)
                for letter, c in zip("IO", channels, strict=True)]  # fmt: skip
    if found != expected:
        return None  # a depthwise weight as [channels, multiplier]
    forced = tuple(map(data.index, data_layout))

    def attrs(order: Order) -> dict[str, Attr]:
        known = {n: v for n, v in call.attrs.items() if n != "out_layout"}
        return {**known, "data_layout": data_layout, "kernel_layout": wanted}

    every = identity(4)
    return Axes(
        4,
        (every, every),
        (every,),
        attrs,
        allows=lambda order: order == forced,
        forced=forced,
        weight=tuple(map(kernel.index, wanted)),
    )


_RULES: Mapping[str, Callable[[OpCall], Axes | None]] = {
    "avg_pool2d": _pool,
    "batch_norm": _batch_norm,
    "bias_add": _per_channel,
    "concatenate": _along,
    "dequantize": _per_channel,
    "fixed_point_multiply": _of_numbers,
    "global_avg_pool2d": _pool,
    "max": _reduction,
    "max_pool2d": _pool,
    "mean": _reduction,
    "nn.pad": _pad,
    "quantize": _per_channel,
    "requantize": _of_numbers,
    "requantize_by_channel": _per_channel,
    "resize2d": _pool,
    "softmax": _softmax,
    "split": _along,
    "sum": _reduction,
}
