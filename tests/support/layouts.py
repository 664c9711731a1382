"""What the tests of op info share: layouts as NumPy sees them, and what ops say they compute."""

from __future__ import annotations

import re

import numpy as np

from selfbyoc import UNKNOWN, Composite
from selfbyoc.codegen.info.layout_map import INNER, OUTER, LayoutMap, Part
from selfbyoc.codegen.info.op_info import recorded_of
from selfbyoc.codegen.stack import stack
from selfbyoc.graph import OpCall, Value
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.ops.vocabulary import numpy_of
from selfbyoc.partition.select import select
from selfbyoc.tvm import param_buffers, tvm

_PLAIN = {"data_layout": "NCHW", "kernel_layout": "OIHW", "out_layout": "NCHW", "layout": "NCHW"}


def stacked(program, /, **shapes):
    """The stacked function of a program, which is its own composite."""
    args = {n: (s, "float32") for n, s in shapes.items()}
    graph = ir.read(emit(program, args)["main"])
    (match,), _ = select(graph, [Composite("under_test", program)])
    return stack(graph, match)


def module(func):
    """A module of one function; keep it while it is scheduled (docs/makers/tvm-notes.md)."""
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


def split(layout):
    """`NCHW4c` as [("N", 0), ("C", 0), ("H", 0), ("W", 0), ("C", 4)]."""
    found = re.findall(r"(\d*)([A-Za-z])", layout)
    return [(letter.upper(), int(factor or 0)) for factor, letter in found]


def to_plain(array, layout, wanted):
    """An array from any layout into one without split axes."""
    axes = split(layout)
    order = [i for letter in wanted for half in (0, 1) for i, (at, factor) in enumerate(axes)
             if at == letter and bool(factor) == bool(half)]  # fmt: skip
    turned = array.transpose(order)
    shape = [int(np.prod([array.shape[i] for i, (at, _) in enumerate(axes) if at == letter]))
             for letter in wanted]  # fmt: skip
    return turned.reshape(shape)


def from_plain(array, layout, wanted):
    """The inverse: out of `wanted`, which has no split axes, into `layout`."""
    axes = split(layout)
    factors = {letter: factor for letter, factor in axes if factor}
    shape, names = [], []
    for extent, letter in zip(array.shape, wanted, strict=True):
        if letter in factors:
            shape += [extent // factors[letter], factors[letter]]
            names += [(letter, 0), (letter, factors[letter])]
        else:
            shape.append(extent)
            names.append((letter, 0))
    return array.reshape(shape).transpose([names.index(axis) for axis in axes])


def moved(array, layout: LayoutMap):
    """An array in a new layout."""
    factors = {p.axis: p.factor for p in layout.parts if p.half == INNER}
    shape, names = [], []
    for axis, extent in enumerate(array.shape):
        if axis in factors:
            shape += [extent // factors[axis], factors[axis]]
            names += [(axis, OUTER), (axis, INNER)]
        else:
            shape.append(extent)
            names.append((axis, "whole"))
    return array.reshape(shape).transpose([names.index((p.axis, p.half)) for p in layout.parts])


def index_map(layout: LayoutMap, ndim):
    """The map as TVM takes it."""
    names = [f"i{n}" for n in range(ndim)]
    text = {"whole": "{}", OUTER: "{} // {}", INNER: "{} % {}"}
    parts = [text[p.half].format(names[p.axis], p.factor) for p in layout.parts]
    return eval(f"lambda {', '.join(names)}: ({', '.join(parts)},)")


def permuted(*axes):
    return LayoutMap(tuple(map(Part, axes)))


def is_known(info):
    tensors = [*info.inputs, *info.outputs]
    values = [*info.attrs.values(), *(t.layout for t in tensors), *(t.shape for t in tensors)]
    return not any(value is UNKNOWN for value in values)


def computed(func, infos, arrays):
    """What the ops say that a function computes, given arrays in the layouts that they claim."""
    known = {("param", i): np.asarray(a, "float64") for i, a in enumerate(arrays)}
    result = None
    for info, (ins, outs) in zip(infos, recorded_of(func).refs, strict=True):
        read = []
        for tensor, ref in zip(info.inputs, ins, strict=True):
            array = known[ref]
            assert array.shape == tensor.shape, (info, array.shape)
            read.append(array)
        found = _op(info, read)
        for tensor, ref, array in zip(info.outputs, outs, found, strict=True):
            assert array.shape == tensor.shape, (info, array.shape)
            known[ref] = result = array
    return result


def _op(info, arrays):
    """One op in NumPy: into the plain layout, computed, and back."""
    plain = [a if t.layout is None else to_plain(a, t.layout, _kind(info, t.layout))
             for a, t in zip(arrays, info.inputs, strict=True)]  # fmt: skip
    attrs = {**info.attrs, **{k: v for k, v in _PLAIN.items() if k in info.attrs}}
    values = tuple(Value(t.shape, t.dtype) for t in info.inputs)
    outs = []
    for tensor in info.outputs:
        shape = tensor.shape
        if tensor.layout is not None:
            shape = to_plain(np.empty(shape), tensor.layout, "NCHW").shape
        outs.append(Value(shape, tensor.dtype))
    found = numpy_of(info.kind)(plain, OpCall(info.kind, values, attrs, tuple(outs), info.name))
    found = found if isinstance(found, list) else [found]
    return [a if t.layout is None else from_plain(a, t.layout, "NCHW")
            for a, t in zip(found, info.outputs, strict=False)]  # fmt: skip


def _kind(info, layout):
    return "OIHW" if "O" in layout.upper() else "NCHW"


def params(func):
    """The buffers of a function's parameters."""
    return param_buffers(func)
