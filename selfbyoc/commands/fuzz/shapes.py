"""Changes of types: an extent, a dimension of 1, a dtype, a layout; and making a program small."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from ...ops.cells import GATES
from .infer import Invalid, Type, infer
from .program import Draft, Program

Types = list[tuple[Type, ...]]
_EXTENTS = (1, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40)
_WITH_SHAPE = ("reshape", "broadcast_to")
LIMIT = 4_000_000  # steps of a program: what NumPy does in a moment


def work(program: Program, types: Sequence[tuple[Type, ...]]) -> int:
    """About how many steps it takes: multiply-adds, or elements."""
    total = 0
    for index, node in enumerate(program.nodes):
        size = math.prod(types[index][0][0])
        if node.kind == "conv2d":
            weight, layout = types[node.inputs[1]][0][0], node.attrs.get("kernel_layout", "OIHW")
            size *= math.prod(weight) // weight[layout.index("O")]
        elif node.kind in ("dense", "batch_matmul", "matmul"):
            size *= max(types[node.inputs[0]][0][0][-2:])
        elif node.kind in GATES:
            size *= types[node.inputs[1]][0][0][1]
        total += size
    return total


def everywhere(program: Program, old: int, new: int, told: str) -> Program:
    """An extent by another one in every leaf, and in attributes that are shapes or groups."""
    draft = Draft(program)
    for index, node in enumerate(program.nodes):
        if node.is_leaf:
            draft.change(index, shape=tuple(new if e == old else e for e in node.shape))
        elif node.kind in _WITH_SHAPE:
            shape = tuple(new if e == old else e for e in node.attrs["shape"])
            draft.change(index, attrs={**node.attrs, "shape": shape})
        elif node.attrs.get("groups") == old and old > 1:
            draft.change(index, attrs={**node.attrs, "groups": new})
    return draft.done(told)


def at_places(program: Program, places: Sequence[tuple[int, int]], new: int, told: str) -> Program:
    """Another extent at these axes of these leaves."""
    draft = Draft(program)
    for leaf, axis in places:
        shape = list(draft.nodes[leaf].shape)
        shape[axis] = new
        draft.change(leaf, shape=tuple(shape))
    return draft.done(told)


def valid(program: Program) -> bool:
    """Whether its types fit."""
    try:
        infer(program)
    except Invalid:
        return False
    return True


def extent(program: Program, types: Types, rng: Random) -> Program | None:
    """One extent, and as many of its equals as it takes for the types to fit."""
    axes = [(i, n) for i in program.leaves() for n in range(len(program.nodes[i].shape))]
    if not axes:
        return None
    leaf, axis = rng.choice(axes)
    others = [e for e in _EXTENTS if e != program.nodes[leaf].shape[axis]]
    return resized(program, leaf, axis, rng.choice(others), rng)


def resized(program: Program, leaf: int, axis: int, new: int, rng: Random) -> Program | None:
    """Another extent of one axis of a leaf, and of what goes with it; None if nothing fits."""
    old = program.nodes[leaf].shape[axis]
    told = f"{old} -> {new}"
    equal = [
        (i, n)
        for i in program.leaves()
        for n, e in enumerate(program.nodes[i].shape)
        if e == old and (i, n) != (leaf, axis)
    ]
    tries = [at_places(program, [(leaf, axis)], new, told)]
    for _ in range(8):
        some = [place for place in equal if rng.random() < 0.5]
        tries.append(at_places(program, [(leaf, axis), *some], new, told))
    if old > 1:
        tries.insert(rng.randrange(2), everywhere(program, old, new, told))
    return next((p for p in tries if valid(p)), None)


def fitted(program: Program, rng: Random) -> Program | None:
    """The program with extents so small that it takes few steps; None where that cannot be."""
    for _ in range(12):
        if work(program, infer(program)) <= LIMIT:
            return program
        sizes = sorted({e for i in program.leaves() for e in program.nodes[i].shape}, reverse=True)
        tries = [everywhere(program, old, _less(old, rng), "") for old in sizes if old > 8]
        smaller = next((p for p in tries if valid(p)), None)
        if smaller is None:
            return None
        program = smaller
    return None


def _less(old: int, rng: Random) -> int:
    """A smaller extent; half the time one that the old one is a multiple of."""
    divisors = [d for d in range(4, min(old, 33)) if old % d == 0]
    if divisors and rng.random() < 0.5:
        return rng.choice(divisors)
    return rng.randrange(2, min(old, 33))


def dtype(program: Program, types: Types, rng: Random) -> Program | None:
    """Another dtype of all leaves that have one, or of one leaf with a cast after it."""
    draft, leaf = Draft(program), rng.choice(program.leaves())
    old = program.nodes[leaf].dtype
    new = rng.choice(_OTHERS.get(old, ("float32",)))
    if rng.random() < 0.4:
        draft.change(leaf, dtype=new)
        cast = draft.op("cast", leaf, dtype=old)
        draft.redirect(leaf, cast)
        return draft.done(f"a {new} leaf, cast")
    for index in program.leaves():
        if program.nodes[index].dtype == old:
            draft.change(index, dtype=new)
    return draft.done(f"{old} -> {new}")


_OTHERS = {
    "float32": ("float16", "float64", "float64"), "int8": ("int32", "int16", "uint8"),
    "int32": ("int64", "int16"), "uint8": ("int8",),
}  # fmt: skip

_LAST = (0, 2, 3, 1)  # NCHW -> NHWC
_FIRST = (0, 3, 1, 2)


def layout(program: Program, types: Types, rng: Random) -> Program | None:
    """A convolution or pooling in the other layout, with transposes or other leaves around it."""
    images = ("conv2d", "max_pool2d", "avg_pool2d", "global_avg_pool2d", "resize2d")
    found = [i for i, n in enumerate(program.nodes) if n.kind in images]
    if not found:
        return None
    at = rng.choice(found)
    node, draft = program.nodes[at], Draft(program)
    name = "data_layout" if node.kind == "conv2d" else "layout"
    is_first = node.attrs.get(name, "NCHW") == "NCHW"
    there, back = (_LAST, _FIRST) if is_first else (_FIRST, _LAST)
    attrs = {**node.attrs, name: "NHWC" if is_first else "NCHW"}
    inputs = [_turned(draft, node.inputs[0], there, rng)]
    if node.kind == "conv2d":
        old = node.attrs.get("kernel_layout", "OIHW")
        attrs["kernel_layout"] = "HWIO" if is_first else "OIHW"
        turn = tuple(old.index(letter) for letter in attrs["kernel_layout"])
        inputs.append(_turned(draft, node.inputs[1], turn, rng))
    draft.change(at, attrs=attrs, inputs=tuple(inputs))
    draft.redirect(at, draft.op("transpose", at, axes=back))
    return draft.done(f"{node.kind} in {attrs[name]}")


def _turned(draft: Draft, index: int, axes: Sequence[int], rng: Random) -> int:
    node = draft.nodes[index]
    only = sum(index in n.inputs for n in draft.nodes) == 1 and index not in draft.outputs
    if node.is_leaf and only and len(node.shape) == len(axes) and rng.random() < 0.6:
        draft.change(index, shape=tuple(node.shape[a] for a in axes))
        return index
    return draft.op("transpose", index, axes=tuple(axes))


Edit = Callable[[Program, Types, Random], "Program | None"]
SHAPES: Mapping[str, Any] = {"extent": extent, "dtype": dtype, "layout": layout}
EDITS: tuple[Edit, ...] = (extent, extent, extent, dtype, layout)
