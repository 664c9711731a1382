"""The same meaning in other words: what importers write, and what must match as before.

A spelling adds nodes for one op and returns the one that stands for it, or None where it does not
apply. TWINS are exact, or nearly, and are read away: a program with one of them must match the same
composites. The others (ALL) only have to give the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from .infer import Type
from .program import CONSTANT, Draft, Node, Program

Types = list[tuple[Type, ...]]
Spelling = Callable[[Draft, Node, Types, Random], "int | None"]


def _clip(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    dtype = t[n.inputs[0]][0][1]
    low, high = n.attrs.get("a_min", 0.0), n.attrs.get("a_max", 6.0)
    if low > high:
        return None
    above = d.op("maximum", n.inputs[0], d.scalar(low, dtype))
    return d.op("minimum", above, d.scalar(high, dtype))


def _clip_from_above(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    dtype = t[n.inputs[0]][0][1]
    low, high = n.attrs.get("a_min", 0.0), n.attrs.get("a_max", 6.0)
    below = d.op("minimum", d.scalar(high, dtype), n.inputs[0])
    if low == 0 and rng.random() < 0.5:
        return d.op("relu", below)
    return d.op("maximum", below, d.scalar(low, dtype))


def _relu(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    shape, dtype = t[n.inputs[0]][0]
    pair = [n.inputs[0], d.scalar(0.0, dtype, rng.randrange(len(shape) + 1))]
    rng.shuffle(pair)
    return d.op("maximum", *pair)


def _silu(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    pair = [n.inputs[0], d.op("sigmoid", n.inputs[0])]
    rng.shuffle(pair)
    return d.op("multiply", *pair)


def _hard_swish(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    (x,), dtype = n.inputs, t[n.inputs[0]][0][1]
    six = d.scalar(6.0, dtype)
    if rng.random() < 0.5:
        gate = d.op("clip", d.op("add", x, d.scalar(3.0, dtype)), a_min=0.0, a_max=6.0)
        return d.op("divide", d.op("multiply", gate, x), six)
    line = d.op("add", d.scalar(0.5, dtype), d.op("divide", x, six))
    return d.op("multiply", x, d.op("clip", line, a_min=0.0, a_max=1.0))


def _gelu(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    (x,), dtype = n.inputs, t[n.inputs[0]][0][1]
    if rng.random() < 0.5:
        inner = d.op("erf", d.op("divide", x, d.scalar(math.sqrt(2), dtype)))
    else:
        inner = d.op("erf", d.op("multiply", x, d.scalar(math.sqrt(0.5), dtype)))
    one = d.op("add", d.scalar(1.0, dtype), inner)
    if rng.random() < 0.5:
        return d.op("multiply", d.op("multiply", x, d.scalar(0.5, dtype)), one)
    return d.op("multiply", d.op("multiply", x, one), d.scalar(0.5, dtype))


def _bias(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    (shape, _), bias = t[n.inputs[0]][0], n.inputs[1]
    axis = n.attrs.get("axis", 1) % len(shape)
    column = [shape[axis]] + [1] * (len(shape) - axis - 1)
    if axis != len(shape) - 1:
        if rng.random() < 0.5:
            column = [1] * axis + column
        leaf = d.nodes[bias]
        if leaf.is_leaf and leaf.kind == CONSTANT and rng.random() < 0.5:
            bias = d.leaf(column, leaf.dtype, CONSTANT, leaf.value)
        else:
            bias = d.op("reshape", bias, shape=tuple(column))
    pair = [n.inputs[0], bias]
    rng.shuffle(pair)
    return d.op("add", *pair)


def _bias_of_data(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    """Read as a bias again: no op computes it, and it cannot be a residual of one element a row."""
    (shape, _), axis = t[n.inputs[0]][0], n.attrs.get("axis", 1)
    if math.prod(shape) == shape[axis] or not d.nodes[n.inputs[1]].is_leaf:
        return None
    return _bias(d, n, t, rng)


def _commuted(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    return d.op(n.kind, *reversed(n.inputs))


def _same_shape(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    """A reshape to the shape that it has."""
    again = d.op(n.kind, *n.inputs, **n.attrs)
    return d.op("reshape", again, shape=t[d.nodes.index(n)][0][0])


def _there_and_back(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    shape = t[d.nodes.index(n)][0][0]
    again = d.op(n.kind, *n.inputs, **n.attrs)
    flat = d.op("reshape", again, shape=(math.prod(shape),))
    return d.op("reshape", flat, shape=shape)


def _turned_twice(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    ndim = len(t[d.nodes.index(n)][0][0])
    axes = list(range(ndim))
    rng.shuffle(axes)
    again = d.op(n.kind, *n.inputs, **n.attrs)
    back = tuple(axes.index(a) for a in range(ndim))
    return d.op("transpose", d.op("transpose", again, axes=tuple(axes)), axes=back)


def _rows(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    shape = t[n.inputs[0]][0][0]
    if len(shape) < 3:
        return None
    flat = d.op("reshape", n.inputs[0], shape=(math.prod(shape[:-1]), shape[-1]))
    made = d.op("dense", flat, n.inputs[1], **n.attrs)
    return d.op("reshape", made, shape=(*shape[:-1], t[n.inputs[1]][0][0][0]))


def _batches(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    """A dense layer as a product of batches of one."""
    (rows, weight) = (t[i][0][0] for i in n.inputs)
    if len(rows) != 2:
        return None
    left = d.op("reshape", n.inputs[0], shape=(1, *rows))
    right = d.op("reshape", n.inputs[1], shape=(1, *weight))
    made = d.op("batch_matmul", left, right, transpose_b=True, **n.attrs)
    return d.op("reshape", made, shape=(rows[0], weight[0]))


def _subtract(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    return d.op("add", n.inputs[0], d.op("negative", n.inputs[1]))


def _softmax(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    (x,), axis = n.inputs, n.attrs.get("axis", -1)
    above = d.op("subtract", x, d.op("max", x, axis=(axis,), keepdims=True))
    powers = d.op("exp", above)
    return d.op("divide", powers, d.op("sum", powers, axis=(axis,), keepdims=True))


def _layer_norm(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    (x, gamma, beta), (shape, dtype) = n.inputs, t[n.inputs[0]][0]
    if n.attrs.get("axis", -1) % len(shape) != len(shape) - 1:
        return None
    over = {"axis": (-1,), "keepdims": True}
    off = d.op("subtract", x, d.op("mean", x, **over))
    variance = d.op("mean", d.op("multiply", off, off), **over)
    epsilon = d.scalar(n.attrs.get("epsilon", 1e-5), dtype, rng.choice((0, 1, len(shape))))
    root = d.op("sqrt", d.op("add", variance, epsilon))
    scaled = d.op("multiply", d.op("divide", off, root), gamma)
    return d.op("add", scaled, beta)


def _rms_norm(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    (x, gamma), (shape, dtype) = n.inputs, t[n.inputs[0]][0]
    if n.attrs.get("axis", -1) % len(shape) != len(shape) - 1:
        return None
    number = d.scalar(2.0, dtype)
    square = d.op("power", x, number) if rng.random() < 0.5 else d.op("multiply", x, x)
    epsilon = d.scalar(n.attrs.get("epsilon", 1e-5), dtype, rng.choice((0, 1, len(shape))))
    spread = d.op("add", d.op("mean", square, axis=(-1,), keepdims=True), epsilon)
    how = rng.randrange(3)
    if how == 0:
        normal = d.op("divide", x, d.op("sqrt", spread))
    elif how == 1:
        inverse = d.op("divide", d.scalar(1.0, dtype), d.op("sqrt", spread))
        normal = d.op("multiply", inverse, x)
    else:
        normal = d.op("multiply", x, d.op("rsqrt", spread))
    pair = [normal, gamma]
    rng.shuffle(pair)
    return d.op("multiply", *pair)


def _pool(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    axes = (2, 3) if n.attrs.get("layout", "NCHW") == "NCHW" else (1, 2)
    return d.op("mean", n.inputs[0], axis=axes, keepdims=True)


def _raised(d: Draft, n: Node, t: Types, rng: Random) -> int | None:
    """A number of one element, with axes of one before it."""
    found = [i for i in n.inputs if d.nodes[i].value is not None]
    ranks = [len(t[i][0][0]) for i in n.inputs if i not in found]
    if not found or not ranks:
        return None
    number = d.nodes[found[0]]
    other = d.scalar(number.value or 0.0, number.dtype, rng.randrange(max(ranks) + 1))
    return d.op(n.kind, *(other if i == found[0] else i for i in n.inputs), **n.attrs)


_COMMUTE = ("add", "multiply", "maximum", "minimum")
_ANY = "*"
TWINS: dict[str, tuple[Spelling, ...]] = {
    "clip": (_clip, _clip_from_above), "relu": (_relu,), "silu": (_silu,), "gelu": (_gelu,),
    "hard_swish": (_hard_swish,),
    "bias_add": (_bias_of_data,), "divide": (_raised,), _ANY: (_same_shape,),
    **dict.fromkeys(_COMMUTE, (_commuted, _raised)),
}  # fmt: skip
_MORE: dict[str, tuple[Spelling, ...]] = {
    "bias_add": (_bias,), "dense": (_rows, _batches), "subtract": (_subtract,),
    "softmax": (_softmax,),
    "layer_norm": (_layer_norm,), "rms_norm": (_rms_norm,), "global_avg_pool2d": (_pool,),
    _ANY: (_there_and_back, _turned_twice),
}  # fmt: skip
ALL = {kind: (*TWINS.get(kind, ()), *_MORE.get(kind, ())) for kind in (*TWINS, *_MORE)}


def respelled(
    program: Program, types: Types, rng: Random, table: dict[str, tuple[Spelling, ...]]
) -> Program | None:
    """One op in other words, told as `spelled KIND NAME`; None where none applies."""
    places = [
        (i, how)
        for i, n in enumerate(program.nodes)
        if not n.is_leaf and len(types[i]) == 1 and n.kind != "item"
        for how in (*table.get(n.kind, ()), *(table[_ANY] if rng.random() < 0.2 else ()))
    ]
    rng.shuffle(places)
    for at, how in places[:4]:
        draft = Draft(program)
        count = len(draft.nodes)
        new = how(draft, program.nodes[at], types, rng)
        if new is not None:
            draft.redirect(at, new, keep=range(count, len(draft.nodes)))
            return draft.done(f"spelled {program.nodes[at].kind}{how.__name__}")
    return None


def spell(program: Program, types: Types, rng: Random) -> Program | None:
    """An importer's spelling of one op."""
    return respelled(program, types, rng, ALL)
