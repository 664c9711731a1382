"""Ops in layouts that TVM itself computes: others get changes of layout around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from typing import Any

from ...graph import OpCall, OpGraph, Value
from ...tvm import GENERATION
from ..info.layout_map import LayoutMap, Part
from ..info.layout_names import layout_attrs
from .changes import Calls, from_letters

Layouts = Mapping[str, str]  # by attribute


def with_plain_layouts(graph: OpGraph) -> OpGraph:
    """A graph that TVM builds: around each op in a layout that it has no code for, as conv2d in
    NCHW16c, the op's tensors are transposed and reshaped to the nearest one that it has.
    """
    calls = Calls()
    new: dict[Value, Value] = {}
    for call in graph.ops:
        call = OpCall(
            call.kind, tuple(new.get(v, v) for v in call.inputs), call.attrs, call.outputs,
            call.name,
        )  # fmt: skip
        moved = _by_axis(call) or _by_letters(call)
        if moved is None:
            calls.add(call.name, call.kind, call.inputs, call.attrs, call.outputs)
        else:
            new |= _around(calls, call, moved)
    outputs = tuple(new.get(v, v) for v in graph.outputs)
    return OpGraph(graph.inputs, tuple(calls.ops), outputs)


Move = tuple[tuple[Any, ...], LayoutMap, LayoutMap]  # a tensor's axes; as it is, and for TVM


@dataclass(frozen=True)
class _Moved:
    """An op as TVM computes it; `None` is a tensor that stays."""

    attrs: Mapping[str, Any]
    inputs: Sequence[Move | None]
    outputs: Sequence[Move | None]


def _around(calls: Calls, call: OpCall, moved: _Moved) -> dict[Value, Value]:
    """The op in other layouts, between changes -> its results as they were."""
    read = [
        value if move is None else calls.change(value, *move)
        for value, move in zip(call.inputs, moved.inputs, strict=True)
    ]
    made = [
        value if move is None else Value(move[2].shape(move[0]), value.dtype, value.name)
        for value, move in zip(call.outputs, moved.outputs, strict=True)
    ]
    calls.add(call.name, call.kind, read, {**call.attrs, **moved.attrs}, made)
    return {
        value: calls.change(new, move[0], move[2], move[1])
        for value, new, move in zip(call.outputs, made, moved.outputs, strict=True)
        if move is not None
    }


def _by_axis(call: OpCall) -> _Moved | None:
    """Relax's rms_norm takes the last axis only (0.27 reads the weight by no index)."""
    if call.kind != "rms_norm" or GENERATION == "relay":
        return None
    ndim = len(call.inputs[0].shape)
    axis = call.attrs["axis"] % ndim
    if axis == ndim - 1:
        return None
    order = (*(a for a in range(ndim) if a != axis), axis)
    last = LayoutMap(tuple(map(Part, order)))
    move = (tuple(call.inputs[0].shape), LayoutMap.identity(ndim), last)
    return _Moved({"axis": ndim - 1}, [move, None], [move])


def _by_letters(call: OpCall) -> _Moved | None:
    ins, outs = layout_attrs(call.kind)
    names = dict.fromkeys((*ins, *outs))
    found = {n: str(call.attrs[n]) for n in names if call.attrs.get(n)}
    wanted = _nearest(call, found)
    if wanted == found:
        return None
    sides = [
        [
            _maps(value, found[name], wanted[name]) if name else None
            for value, name in zip_longest(values, of_side)
        ]
        for values, of_side in ((call.inputs, ins), (call.outputs, outs))
    ]
    return _Moved(wanted, *sides)


def _maps(value: Value, found: str, wanted: str) -> Move:
    """The axes in their plain order, and the layouts as maps of these."""
    plain = _plain(found)
    was = from_letters(plain, found)
    shape = tuple(prod(value.shape[p] for p in was.positions(a)) for a in range(len(plain)))
    return shape, was, from_letters(plain, wanted)


def _plain(layout: str) -> str:
    """The letters in TVM's first order, such as NCHW, OIHW, NCW."""
    letters = layout.upper()
    return "".join(c for c in ("OIHW" if "I" in letters else "NCHW") if c in letters)


def _nearest(call: OpCall, found: Layouts) -> Layouts:
    """The layouts that TVM has, in which the fewest bytes must be moved."""
    ins, outs = layout_attrs(call.kind)
    sizes: dict[str, int] = {}
    for side, names in ((call.inputs, ins), (call.outputs, outs)):
        for value, name in zip(side, names, strict=False):
            known = [e for e in value.shape if isinstance(e, int)]
            sizes[name] = sizes.get(name, 0) + prod(known)

    def moved(layouts: Layouts) -> int:
        return sum(sizes[name] for name in found if layouts[name] != found[name])

    options = [o for o in (found, *_options(call, found)) if _has(call, o)]
    return min(options, key=moved, default=found)


def _options(call: OpCall, found: Layouts) -> Iterator[Layouts]:
    whole = {name: _plain(layout) for name, layout in found.items()}
    if call.kind.endswith("_transpose"):
        whole["kernel_layout"] = "IOHW" if "H" in whole["kernel_layout"] else "IOW"
    if call.kind == "conv2d":
        for data in (found["data_layout"], found["out_layout"], "NHWC"):
            for kernel in (found["kernel_layout"], "OIHW", "HWIO"):
                yield {"data_layout": data, "kernel_layout": kernel, "out_layout": data}
    elif "H" in str(found.get("layout", "")):
        yield {"layout": "NHWC"}
    yield whole


def _has(call: OpCall, layouts: Layouts) -> bool:
    """Whether TVM computes the op in these layouts."""
    if not layouts:
        return True
    if call.kind == "conv2d":
        return _has_conv2d(call, layouts)
    if call.kind.endswith("_transpose"):
        return set(layouts.values()) <= {"NCHW", "IOHW", "NCW", "IOW"}
    return layouts["layout"] in ("NCHW", "NHWC")


def _has_conv2d(call: OpCall, layouts: Layouts) -> bool:
    data, kernel, out = (layouts[n] for n in ("data_layout", "kernel_layout", "out_layout"))
    if data != out:
        return False
    if GENERATION == "relax":  # any order of axes that has H before W
        return all(sorted(s) == sorted(_plain(s)) and "H" in s.partition("W")[0]
                   for s in (data, kernel))  # fmt: skip
    if data == "NHWC":
        return kernel == ("HWIO" if call.attrs["groups"] == 1 else "")
    return (data, kernel) == ("NCHW", "OIHW")
