"""How each kind of op is drawn: its attributes, and the types of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from selfbyoc.commands.fuzz.infer import Invalid
from selfbyoc.ops.cells import GATES
from selfbyoc.ops.few_bits import BITS
from selfbyoc.ops.resampling import MODES, ROUNDINGS

from . import sizes
from .drawing import Drawing, Rule, Shape, Wanted
from .recurrent import recurrent


def _cannot(d: Drawing, at: int, wanted: Wanted) -> None:
    raise Invalid(f"{d.node(at).kind}: its result is not drawn to a shape")


# ---- elementwise: one side first, then what fits beside it


def _sides(d: Drawing, at: int) -> tuple[int, list[int]]:
    """The input that says the shape: one that is known or also read below, one that is computed, or
    an argument; and the others.
    """
    free = [i for i in d.node(at).inputs if d.node(i).value is None]
    free.sort(key=lambda i: (i not in d.types and not d.is_shared(i), d.node(i).is_leaf))
    return free[0], [i for i in free[1:] if i != free[0]]


def _elementwise(d: Drawing, at: int) -> None:
    first, others = _sides(d, at)
    shape = d.give(first)
    for other in others:
        _beside(d, other, shape)


def _elementwise_to(d: Drawing, at: int, wanted: Wanted) -> None:
    first, others = _sides(d, at)
    d.need(first, wanted)
    for other in others:
        _beside(d, other, d.shape(first))


def _beside(d: Drawing, other: int, shape: Shape) -> None:
    """As large; an argument may be one row, one column, or fewer axes."""
    if other in d.types or not d.node(other).is_leaf:
        return d.need(other, shape)
    if d.rng.random() < 0.5:
        return d.need(other, shape)
    kept = [e if d.rng.random() < 0.5 else 1 for e in shape]
    return d.need(other, kept[d.rng.randint(0, len(kept) - 1) :] if d.rng.random() < 0.3 else kept)


# ---- vectors along an axis: a bias, a norm


def _along(d: Drawing, at: int) -> None:
    x, *vectors = d.node(at).inputs
    _vectors(d, at, d.give(x), vectors)


def _along_to(d: Drawing, at: int, wanted: Wanted) -> None:
    x, *vectors = d.node(at).inputs
    d.need(x, wanted)
    _vectors(d, at, d.shape(x), vectors)


def _vectors(d: Drawing, at: int, shape: Shape, vectors: Sequence[int]) -> None:
    axis = d.attrs(at)["axis"]
    if len(shape) != 4:  # of rows, whatever their rank was in the case
        axis = -1
        d.set(at, axis=axis)
    for vector in vectors:
        d.need(vector, (shape[axis],))


def _levels(d: Drawing, at: int) -> None:
    x, *factors = d.node(at).inputs
    _factors(d, at, d.give(x), factors)


def _levels_to(d: Drawing, at: int, wanted: Wanted) -> None:
    x, *factors = d.node(at).inputs
    d.need(x, wanted)
    _factors(d, at, d.shape(x), factors)


def _factors(d: Drawing, at: int, shape: Shape, factors: Sequence[int]) -> None:
    """Scales and zero points that are arguments lie along the axis; numbers have no shape."""
    for factor in factors:
        given = d.node(factor).value is None
        d.need(factor, (shape[d.attrs(at).get("axis", -1)],) if given else ())


def _of_groups(d: Drawing, at: int) -> None:
    _of_groups_to(d, at, (None, None))


def _of_groups_to(d: Drawing, at: int, wanted: Wanted) -> None:
    """Bits, and a group of any length: a scale and a zero point for each, the last may be short."""
    levels, *factors = d.node(at).inputs
    d.need(levels, wanted)
    units, depth = d.shape(levels)
    group = d.rng.choice((16, 32, 64, 128, sizes.extent(d.rng, 300)))
    d.set(at, bits=d.rng.choice(BITS), group=group)
    for factor in factors:
        d.need(factor, (units, -(-depth // group)))


def _rounded(d: Drawing, at: int) -> None:
    d.give(d.node(at).inputs[0])
    _group_of_weight(d, at)


def _rounded_to(d: Drawing, at: int, wanted: Wanted) -> None:
    d.need(d.node(at).inputs[0], wanted)
    _group_of_weight(d, at)


def _group_of_weight(d: Drawing, at: int) -> None:
    """Rows that are rounded have the groups of the weight that multiplies them."""
    kinds = [node.kind for node in d.nodes]
    weight = kinds.index("dequantize_groups")
    if weight not in d.types:
        d.need(weight, (None, d.shape(d.node(at).inputs[0])[-1]))
    d.set(at, group=d.attrs(weight)["group"])


def _rows(d: Drawing, leaf: int) -> Shape:
    """Rows of any number of axes."""
    rank = d.rng.choice((2, 2, 3, 3, 4))
    lead = [sizes.extent(d.rng, 600 if n == rank - 2 else 40) for n in range(rank - 1)]
    return (*lead, sizes.extent(d.rng, 4096))


def _softmax(d: Drawing, at: int) -> None:
    d.give(d.node(at).inputs[0])
    d.set(at, axis=-1)


# ---- windows


def _image(d: Drawing, leaf: int) -> Shape:
    known = d.node(leaf).shape
    few = known[1] if known[1] <= 4 and d.rng.random() < 0.5 else None
    return sizes.image(d.rng, few, len(known) - 2)


def _conv2d(d: Drawing, at: int) -> None:
    x, weight = d.node(at).inputs
    _, channels, *_ = d.give(x)
    known = _known(d, weight)
    groups = _groups(d, at, channels, known)
    window = sizes.window(d.rng, known[2:])
    apart = sizes.dilation(d.rng)
    reach = [(window[n] - 1) * apart[n] for n in (0, 1)]
    pads = sizes.padding(d.rng, reach)
    d.set(at, groups=groups, strides=sizes.strides(d.rng), dilation=apart, padding=pads)
    each = _filters(d, groups, known)
    d.need(weight, (groups * each, channels // groups, *window))


def _known(d: Drawing, index: int) -> Shape:
    """The shape that the case gives a weight, or what is computed of it alone."""
    while not d.node(index).is_leaf:
        index = d.node(index).inputs[0]
    return d.node(index).shape


def _groups(d: Drawing, at: int, channels: int, weight: Shape) -> int:
    """One, as many as channels, or a divisor; as in the case, more often than not."""
    was = d.attrs(at)["groups"]
    if d.rng.random() < 0.6:
        return 1 if was == 1 else channels if weight[1] == 1 else sizes.divisor(d.rng, channels)
    return d.rng.choice((1, channels, sizes.divisor(d.rng, channels)))


def _filters(d: Drawing, groups: int, weight: Shape) -> int:
    """Of a group."""
    if groups == 1:
        return sizes.extent(d.rng, 4096)
    if d.rng.random() < 0.6:
        return 1 if weight[1] == 1 else sizes.extent(d.rng, 64)
    return d.rng.choice((1, 2, sizes.extent(d.rng, 64)))


def _conv2d_to(d: Drawing, at: int, wanted: Wanted) -> None:
    """Strides and padding such that the result is as large as is wanted."""
    x, weight = d.node(at).inputs
    _, channels, *image = d.give(x)
    known = d.node(weight).shape
    out = wanted[1] or _filters(d, 1, known)
    groups = _groups(d, at, channels, known)
    if out % groups or channels % groups:
        groups = 1
    window = sizes.window(d.rng, known[2:])
    steps, apart, pads = _fitted(d, image, window, wanted[2:])
    d.set(at, groups=groups, strides=steps, dilation=apart, padding=pads)
    d.need(weight, (out, channels // groups, *window))


def _fitted(d: Drawing, image: Sequence[int], window: Sequence[int], wanted: Wanted) -> Any:
    apart, found = sizes.dilation(d.rng), []
    for n in (0, 1):
        reach, out = (window[n] - 1) * apart[n], wanted[n]
        if out is None:
            found.append((1, reach // 2, reach - reach // 2))
            continue
        room = image[n] - reach - 1  # steps of one pixel, without padding
        step = max(d.rng.choice((1, 1, 1, 2, 3)), -(-(room + 1) // out))
        more = max(0, (out - 1) * step - room)
        before = more // 2 if d.rng.random() < 0.7 else d.rng.randint(0, more)
        found.append((step, before, more - before))
    (down, top, bottom), (along, left, right) = found
    return (down, along), apart, (top, left, bottom, right)


def _transposed(d: Drawing, at: int) -> None:
    x, weight = d.node(at).inputs
    _, channels, *pixels = d.give(x)
    window = sizes.window(d.rng, d.node(weight).shape[2:])
    steps = sizes.strides(d.rng)
    if len(pixels) == 1:
        window, steps = (1, window[1]), (1, steps[1])
    pads = tuple(
        d.rng.choice((0, 0, (window[n % 2] - 1) // 2, d.rng.randint(0, window[n % 2] - 1)))
        for n in range(4)
    )
    more = tuple(d.rng.choice((0, 0, d.rng.randint(0, step - 1))) for step in steps)
    d.set(at, strides=steps, padding=pads, output_padding=more)
    out = sizes.extent(d.rng, 512)
    d.need(weight, (channels, out, *window[2 - len(pixels) :]))


def _pool(d: Drawing, at: int) -> None:
    _, _, *image = d.give(d.node(at).inputs[0])
    window: Sequence[int] = sizes.window(d.rng, d.attrs(at)["pool_size"])
    if d.rng.random() < 0.1:  # all of the image
        window = tuple(image)
    apart = sizes.dilation(d.rng) if d.node(at).kind == "max_pool2d" else (1, 1)
    pads = sizes.padding(d.rng, [size - 1 for size in window])
    _set_pool(d, at, window, sizes.strides(d.rng), apart, pads)


def _pool_to(d: Drawing, at: int, wanted: Wanted) -> None:
    _, _, *image = d.give(d.node(at).inputs[0])
    window = sizes.window(d.rng, d.attrs(at)["pool_size"])
    _set_pool(d, at, window, *_fitted(d, image, window, wanted[2:]))


def _set_pool(d: Drawing, at: int, window: Any, steps: Any, apart: Any, pads: Any) -> None:
    more = {"ceil_mode": d.rng.random() < 0.3}
    if d.node(at).kind == "avg_pool2d":
        more["count_include_pad"] = d.rng.random() < 0.5
    d.set(at, pool_size=window, strides=steps, dilation=apart, padding=pads, **more)


def _whole(d: Drawing, at: int) -> None:
    d.give(d.node(at).inputs[0])


def _resize(d: Drawing, at: int) -> None:
    d.give(d.node(at).inputs[0])
    size = sizes.extent(d.rng, 300), sizes.extent(d.rng, 300)
    d.set(
        at, size=size,
        method=d.rng.choice(("linear", "nearest_neighbor")),
        coordinate_transformation_mode=d.rng.choice(tuple(MODES)),
        rounding_method=d.rng.choice(ROUNDINGS),
    )  # fmt: skip


# ---- products


def _matrix(d: Drawing, leaf: int) -> Shape:
    lead = [sizes.extent(d.rng, 700) for _ in range(d.rng.choice((1, 1, 1, 2, 2, 3)))]
    return (*(min(e, 40) for e in lead[:-1]), lead[-1], sizes.extent(d.rng, 4096))


def _dense(d: Drawing, at: int) -> None:
    x, weight = d.node(at).inputs
    d.need(weight, (sizes.extent(d.rng, 4096), d.give(x)[-1]))
    if "int" in d.node(x).dtype and d.rng.random() < 0.5:
        d.set(at, out_dtype="int32")


def _dense_to(d: Drawing, at: int, wanted: Wanted) -> None:
    x, weight = d.node(at).inputs
    d.need(x, (*wanted[:-1], None))
    d.need(weight, (wanted[-1] or sizes.extent(d.rng, 4096), d.shape(x)[-1]))


def _matrices(d: Drawing, leaf: int) -> Shape:
    rank = len(d.node(leaf).shape)
    lead = [sizes.extent(d.rng, 40) for _ in range(rank - 2)]
    return (*lead, sizes.extent(d.rng, 700), sizes.extent(d.rng, 700))


def _batch_matmul(d: Drawing, at: int) -> None:
    left, right = d.node(at).inputs
    turns = {name: _turned(d, at, name) for name in ("transpose_a", "transpose_b")}
    d.set(at, **turns)
    *batch, rows, depth = d.give(left)
    depth = rows if turns["transpose_a"] else depth
    columns = None if right in d.types else sizes.extent(d.rng, 700)
    inner = (columns, depth) if turns["transpose_b"] else (depth, columns)
    d.need(right, (*batch, *inner))


def _turned(d: Drawing, at: int, name: str) -> bool:
    was = bool(d.attrs(at)[name])
    return was if d.rng.random() < 0.7 else d.rng.random() < 0.5


def _transpose(d: Drawing, at: int) -> None:
    d.give(d.node(at).inputs[0])


def _transpose_to(d: Drawing, at: int, wanted: Wanted) -> None:
    axes = d.attrs(at)["axes"]
    d.need(d.node(at).inputs[0], [wanted[axes.index(n)] for n in range(len(axes))])


def _tile(d: Drawing, at: int) -> None:
    raise NotImplementedError("a mask is repeated as scores want it")


def _tile_to(d: Drawing, at: int, wanted: Wanted) -> None:
    """The rows of a mask for some heads, which have so many in all."""
    *lead, rows, columns = wanted
    times = d.rng.choice([n for n in range(1, 9) if rows is None or rows % n == 0])
    d.set(at, repeats=(*[1] * len(lead), times, 1))
    once = None if rows is None else rows // times
    d.need(d.node(at).inputs[0], [*lead, once, columns])


def _heads(d: Drawing, leaf: int) -> Shape:
    """[batch, sequence, heads, depth]"""
    sequence, heads, depth = (sizes.extent(d.rng, most) for most in (600, 16, 128))
    return sizes.batch(d.rng), sequence, heads, depth


def _concatenate(d: Drawing, at: int) -> None:
    first, *others = d.node(at).inputs
    shape, axis = list(d.give(first)), d.attrs(at)["axis"]
    for other in others:
        d.need(other, [None if n == axis % len(shape) else e for n, e in enumerate(shape)])


def _embedding(d: Drawing, at: int) -> None:
    table, ids = d.node(at).inputs
    d.need(table, (sizes.extent(d.rng, 300), sizes.extent(d.rng, 600)))
    d.need(ids, [sizes.extent(d.rng, 40) for _ in range(d.rng.randint(1, 3))])


_PLAIN = Rule(_elementwise, _elementwise_to)
_NORM = Rule(_along, _along_to, _rows)
RULES: dict[str, Rule] = {
    **dict.fromkeys(("add", "multiply", "divide", "right_shift"), _PLAIN),
    **dict.fromkeys(("relu", "clip", "silu", "hard_swish", "gelu", "gelu_tanh", "tanh"), _PLAIN),
    **dict.fromkeys(("cast", "half_weight", "half_factor", "round", "requantize"), _PLAIN),
    **dict.fromkeys(("bias_add", "batch_norm"), Rule(_along, _along_to)),
    **dict.fromkeys(("dequantize", "quantize"), Rule(_levels, _levels_to)),
    "requantize_by_channel": Rule(_levels, _levels_to),
    "dequantize_groups": Rule(_of_groups, _of_groups_to),
    "fake_quantize_groups": Rule(_rounded, _rounded_to),
    **dict.fromkeys(("layer_norm", "rms_norm"), _NORM),
    "embedding": Rule(_embedding, _cannot),
    "softmax": Rule(_softmax, _elementwise_to, _rows),
    "conv2d": Rule(_conv2d, _conv2d_to, _image),
    **dict.fromkeys(("conv2d_transpose", "conv1d_transpose"), Rule(_transposed, _cannot, _image)),
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), Rule(_pool, _pool_to, _image)),
    "global_avg_pool2d": Rule(_whole, _cannot, _image),
    "resize2d": Rule(_resize, _cannot, _image),
    "dense": Rule(_dense, _dense_to, _matrix),
    "batch_matmul": Rule(_batch_matmul, _cannot, _matrices),
    "tile": Rule(_tile, _tile_to),
    "transpose": Rule(_transpose, _transpose_to, _heads),
    "concatenate": Rule(_concatenate, _cannot),
    **dict.fromkeys(GATES, Rule(recurrent, _cannot)),
}  # fmt: skip
