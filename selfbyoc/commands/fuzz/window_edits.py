"""Changes of convolutions and pools beyond what models have: every size of a window by itself,
groups that are no channels, branches of one value that stride differently, images of a few pixels.
"""

from __future__ import annotations

from random import Random

from ...tvm.types import Attrs
from .infer import Type
from .program import CONSTANT, Draft, Node, Program
from .shapes import at_places

Types = list[tuple[Type, ...]]
_POOLS = ("max_pool2d", "avg_pool2d")
_KERNELS = (1, 1, 2, 3, 3, 4, 5, 7)
_STEPS = (1, 1, 1, 2, 2, 3)
_EXTENTS = (1, 1, 2, 3, 5)  # of an image of few pixels
_PADS = (0, 0, 1, 1, 2, 3)


def _two(rng: Random, of: tuple[int, ...]) -> tuple[int, int]:
    """Of the two axes, mostly of two sizes."""
    return rng.choice(of), rng.choice(of)


def _drawn(rng: Random, kernel: tuple[int, int], can_dilate: bool) -> dict[str, tuple[int, ...]]:
    """Strides, pads of four sizes that lie inside of the window, dilation often of one axis."""
    apart = rng.choice(((1, 1), (1, 1), (1, 2), (2, 1), (3, 1), (1, 3), (2, 2)))
    apart = apart if can_dilate else (1, 1)
    most = [(k - 1) * d for k, d in zip(kernel, apart, strict=True)]
    pads = tuple(min(rng.choice(_PADS), most[n % 2]) for n in range(4))
    return {"strides": _two(rng, _STEPS), "padding": pads, "dilation": apart}


def _weight(
    draft: Draft, node: Node, kernel: tuple[int, int], groups: int, channels: int, outputs: int
) -> int | None:
    """The weight of a convolution with another window, if nobody else reads it."""
    index = node.inputs[1]
    leaf = draft.nodes[index]
    readers = sum(index in each.inputs for each in draft.nodes)
    if not leaf.is_leaf or readers > 1 or leaf.value is not None:
        return None
    sizes = {"O": outputs, "I": channels // groups, "H": kernel[0], "W": kernel[1]}
    layout = node.attrs.get("kernel_layout", "OIHW")
    return draft.leaf([sizes[letter] for letter in layout], leaf.dtype, leaf.kind)


def window(program: Program, types: Types, rng: Random) -> Program | None:
    """Another window for a convolution or a pool: kernel, strides, pads, dilation, groups."""
    found = [i for i, n in enumerate(program.nodes) if n.kind in ("conv2d", *_POOLS)]
    if not found:
        return None
    draft, at = Draft(program), rng.choice(found)
    node, kernel = program.nodes[at], _two(rng, _KERNELS)
    attrs = {**node.attrs, **_drawn(rng, kernel, node.kind != "avg_pool2d")}
    if node.kind in _POOLS:
        draft.change(at, attrs={**attrs, "pool_size": kernel})
        return draft.done(f"{node.kind} of {kernel}, {_told(attrs)}")
    channels, outputs = _channels(types[node.inputs[0]][0], node), _channels(types[at][0], node)
    both = [g for g in range(1, channels + 1) if channels % g == 0 and outputs % g == 0]
    attrs["groups"] = rng.choice(both)
    weight = _weight(draft, node, kernel, attrs["groups"], channels, outputs)
    if weight is None:
        return None
    draft.change(at, attrs=attrs, inputs=(node.inputs[0], weight))
    return draft.done(f"conv2d of {kernel} in {attrs['groups']} groups, {_told(attrs)}")


def _told(attrs: Attrs) -> str:
    return f"strides {attrs['strides']}, pads {attrs['padding']}, dilation {attrs['dilation']}"


def _channels(image: Type, node: Node) -> int:
    shape, _ = image
    return int(shape[node.attrs.get("data_layout", "NCHW").index("C")])


def branches(program: Program, types: Types, rng: Random) -> Program | None:
    """Two to four convolutions or pools of one image, each with strides of its own, returned."""
    images = [
        i for i, given in enumerate(types)
        if len(given) == 1 and len(given[0][0]) == 4 and given[0][1] == "float32"
        and program.nodes[i].value is None
    ]  # fmt: skip
    if not images:
        return None
    draft, at = Draft(program), rng.choice(images)
    (_, channels, *_), dtype = types[at][0]
    count = rng.randint(2, 4)
    for _ in range(count):
        draft.outputs.append(_branch(draft, at, channels, dtype, rng))
    return draft.done(f"{count} branches of {program.nodes[at].kind}")


def _branch(draft: Draft, at: int, channels: int, dtype: str, rng: Random) -> int:
    kernel = _two(rng, _KERNELS)
    if rng.random() < 0.2:
        kind = rng.choice(_POOLS)
        attrs = _drawn(rng, kernel, kind == "max_pool2d")
        new = draft.op(kind, at, pool_size=kernel, **attrs)
    else:
        groups = rng.choice([g for g in range(1, channels + 1) if channels % g == 0])
        outputs = groups * rng.choice((1, 1, 2, 3, 8))
        weight = draft.leaf((outputs, channels // groups, *kernel), dtype, CONSTANT)
        new = draft.op("conv2d", at, weight, groups=groups, **_drawn(rng, kernel, True))
    after = rng.choice(("relu", "transpose", "negative", "", ""))
    if after == "transpose":
        return draft.op(after, new, axes=(0, 2, 3, 1))
    return draft.op(after, new) if after else new


def pixels(program: Program, types: Types, rng: Random) -> Program | None:
    """An image of few pixels, or of one."""
    found = {
        n.inputs[0]: n for n in program.nodes
        if n.kind in ("conv2d", *_POOLS, "resize2d") and program.nodes[n.inputs[0]].is_leaf
    }  # fmt: skip
    if not found:
        return None
    leaf = rng.choice(sorted(found))
    layout = found[leaf].attrs.get("data_layout", found[leaf].attrs.get("layout", "NCHW"))
    high, wide = _two(rng, _EXTENTS)
    places = [(leaf, layout.index("H"))], [(leaf, layout.index("W"))]
    small = at_places(program, places[0], high, "")
    return at_places(small, places[1], wide, f"an image of {high} x {wide}")


EDITS = (window, window, branches, pixels)
