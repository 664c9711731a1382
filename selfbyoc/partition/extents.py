"""Sizes that kernels cannot index: found in the graph, before any memory is taken for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from ..errors import InputError, SelfbyocError, one_line
from ..graph import OpCall, OpGraph, Value
from ..tvm.types import Function, IRModule

MOST = "at most 2^31 - 1 elements"
LARGEST = 2**31 - 1  # elements: kernels index with 32 bits
ADDRESSES = 2**57  # elements: no computer has more bytes; TVM's sums of 64 bits turn over
# Also what `OpCall.needs_product` is about.
PRODUCTS = (
    "batch_matmul", "conv1d_transpose", "conv2d", "conv2d_transpose", "dense", "matmul",
)  # fmt: skip
BLOCK = 16  # of packed weights: a shorter axis may be filled up to it
_LAYOUTS = ("data_layout", "layout")


def beyond(calls: Sequence[OpCall], values: Sequence[tuple[str, Value]]) -> tuple[str, str, str]:
    """The first value that is too large: where, what it is, and its type; empty texts for none."""
    named = [*values, *((call.name, v) for call in calls for v in call.outputs)]
    for name, value in named:
        if _count(value.shape) > LARGEST:
            return name, "has more than 2^31 - 1 elements", value.type
    for call in calls:
        for what, count, value in _inside(call):
            if count > LARGEST:
                return call.name, f"has more than 2^31 - 1 elements {what}", value.type
    return "", "", ""


def check_addressable(graph: OpGraph) -> None:
    """Raises InputError for a value that no computer holds: TVM's passes reckon with a size that
    turned over, and end the process.
    """
    named = [(value.name, value) for value in graph.inputs]
    for name, value in [*named, *((call.name, v) for call in graph.ops for v in call.outputs)]:
        if _count(value.shape) >= ADDRESSES:
            raise InputError(f"{name} has more elements than any computer has bytes: {value.type}")


def _inside(call: OpCall) -> Iterator[tuple[str, int, Value]]:
    """What an op's kernel may hold beside its inputs and outputs, and how many elements."""
    if not call.inputs or not all(v.is_static for v in call.inputs):
        return
    first, *others = call.inputs
    layout = next((str(call.attrs[n]) for n in _LAYOUTS if call.attrs.get(n)), "")
    if layout.isalpha() and len(layout) == len(first.shape) and {"H", "W"} <= {*layout}:
        yield "with its padding", _count(_padded(call, first, layout)), first
    if call.kind in PRODUCTS and others and others[0].shape:
        weight = others[0]
        shortest = max(1, min(int(e) for e in weight.shape))
        filled = max(1, BLOCK // shortest) if shortest < BLOCK else 1
        yield "when it is packed", _count(weight.shape) * filled, weight


def _padded(call: OpCall, image: Value, layout: str) -> list[int]:
    top, left, bottom, right = (int(p) for p in call.attrs.get("padding", (0, 0, 0, 0)))
    more = {"H": top + bottom, "W": left + right}
    return [
        int(extent) + more.get(letter, 0)
        for letter, extent in zip(layout, image.shape, strict=True)
    ]


def _count(shape: Sequence[int]) -> int:
    """Of an extent that is not known, one."""
    return math.prod(max(int(e), 1) if isinstance(e, int) else 1 for e in shape)


@contextmanager
def sizes_told(mod: IRModule) -> Iterator[None]:
    """What TVM raises of a model with a value beyond its indices names that value: it says of some
    number that it has more than 32 bits. Raises InputError.
    """
    try:
        yield
    except SelfbyocError:
        raise
    except Exception as err:  # TVM raises plain errors of many kinds
        name, text, found = _largest(mod)
        if not name:
            raise
        raise InputError(
            f"{name} {text}: {found}; TVM cannot build that: {one_line(err)[:300]}"
        ) from err


def _largest(mod: IRModule) -> tuple[str, str, str]:
    from ..ir.generation import ir

    found = ("", "", "")
    for func in mod.functions.values():
        graph = _read(ir, func)
        if graph is not None and not found[0]:
            found = beyond(graph.ops, [(v.name, v) for v in graph.inputs])
    return found


def _read(ir: ModuleType, func: Function) -> OpGraph | None:
    try:
        return ir.read(func, raw=True)
    except Exception:  # no graph, as TVM's own functions are; or TVM cannot type it
        return None
