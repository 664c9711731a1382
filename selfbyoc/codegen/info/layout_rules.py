"""What a new layout makes of an op's attributes: a table that ops opt into, one entry a kind.

A rule sees the op with its attributes as recorded, and for each of its tensors the map from the
recorded axes to the present ones (None: not known). It says what the attributes are now and how
the tensors are laid out, or None: the maps are not of a form in which this op can be written.
Attributes of an op without a rule, or whose rule says None, read UNKNOWN as soon as a tensor has
moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...ops.vocabulary import elementwise_kinds
from ...tvm.types import Attr, Attrs
from .layout_map import LayoutMap
from .unknown import UNKNOWN, Unknown

Maps = Sequence[LayoutMap | None]


@dataclass(frozen=True)
class Moved:
    """The op in its new layout: attributes that changed, and the layouts of inputs and outputs."""

    attrs: Mapping[str, Any]
    inputs: tuple[Any, ...]  # letters, None (axes as the op defines them) or UNKNOWN
    outputs: tuple[Any, ...]


@dataclass(frozen=True)
class Before:
    """The op as it was recorded."""

    attrs: Mapping[str, Any]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]


Rule = Callable[[Before, Maps, Maps], Moved | None]


def _plain(ins: Maps, outs: Maps, **attrs: Attr) -> Moved:
    """An op whose tensors' axes have no letters."""
    return Moved(attrs, (None,) * len(ins), (None,) * len(outs))


def _letters(layout: str, moved: LayoutMap | None) -> str | Unknown:
    """A layout's new letters, or UNKNOWN."""
    return (moved and moved.letters(layout)) or UNKNOWN


def _conv2d(op: Before, ins: Maps, outs: Maps) -> Moved:
    """Each tensor has letters of its own; strides, padding and the like go by letter."""
    a = op.attrs
    data, kernel = _letters(a["data_layout"], ins[0]), _letters(a["kernel_layout"], ins[1])
    out = _letters(a["out_layout"], outs[0])
    attrs = {"data_layout": data, "kernel_layout": kernel, "out_layout": out}
    return Moved(attrs, (data, kernel), (out,))


def _pool(op: Before, ins: Maps, outs: Maps) -> Moved:
    """One attribute for both tensors: known where they agree."""
    layout = op.attrs["layout"]
    data, out = _letters(layout, ins[0]), _letters(layout, outs[0])
    agree = data is not UNKNOWN and out is not UNKNOWN and data == out
    return Moved({"layout": data if agree else UNKNOWN}, (data,), (out,))


def _common(maps: Maps) -> LayoutMap | None:
    """The map that all of the tensors share."""
    return maps[0] if None not in maps and len(set(maps)) == 1 else None


def _axis(names: int = 1) -> Rule:
    """An op along one axis of its first `names` inputs and all outputs; other inputs stay.

    `names` 0: all inputs are alike. The axis may move, others may be split too; it itself may not.
    """

    def rule(op: Before, ins: Maps, outs: Maps) -> Moved | None:
        count = names or len(ins)
        rank = len(op.inputs[0])
        big = [m for m, shape in zip(outs, op.outputs, strict=True) if len(shape) == rank]
        common = _common([*ins[:count], *big])
        rest = [*ins[count:], *(m for m in outs if all(m is not b for b in big))]
        if common is None or not all(m is not None and m.is_identity for m in rest):
            return None
        axis = op.attrs["axis"]
        now = common.positions(axis % rank) if isinstance(axis, int) else ()
        return _plain(ins, outs, axis=now[0]) if len(now) == 1 else None

    return rule


def _reduction(op: Before, ins: Maps, outs: Maps) -> Moved | None:
    """The reduced axes may move, and be split; the result must have moved along."""
    (moved,), (result,), rank = ins, outs, len(op.inputs[0])
    if moved is None or result is None:
        return None
    axis = op.attrs["axis"]
    every = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    reduced = {a % rank for a in every}
    now = tuple(sorted(p for a in reduced for p in moved.positions(a)))
    kept = [a for a in range(rank) if a not in reduced]
    if len(op.outputs[0]) == rank:
        wanted = moved if all(len(moved.positions(a)) == 1 for a in reduced) else None
    else:
        parts = [p for p in moved.parts if p.axis not in reduced]
        wanted = LayoutMap(tuple(type(p)(kept.index(p.axis), p.half, p.factor) for p in parts))
    return _plain(ins, outs, axis=now) if wanted == result else None


def _elementwise(op: Before, ins: Maps, outs: Maps) -> Moved | None:
    """No axis means anything, as long as all tensors of the full rank moved alike."""
    full = len(op.outputs[0])
    tensors = list(zip([*ins, *outs], [*op.inputs, *op.outputs], strict=True))
    moved = _common([m for m, shape in tensors if len(shape) == full])
    # A tensor of lower rank is broadcast along the trailing axes, which must not have moved.
    rest = all(m is not None and m.is_identity for m, shape in tensors if len(shape) < full)
    lower = any(0 < len(shape) < full for _, shape in tensors)
    if moved is None or not rest or (lower and not moved.is_identity):
        return None
    stretched = any(len(s) == full and s != op.outputs[0] for _, s in tensors)
    if stretched and moved.permutation is None:
        return None  # a split axis of one element is no axis to broadcast along
    return _plain(ins, outs)


def _transpose(op: Before, ins: Maps, outs: Maps) -> Moved | None:
    """Permutations on either side compose with its own."""
    if ins[0] is None or outs[0] is None:
        return None
    source, result = ins[0].permutation, outs[0].permutation
    if source is None or result is None:
        return None
    return _plain(ins, outs, axes=tuple(source.index(op.attrs["axes"][a]) for a in result))


def _batch_matmul(op: Before, ins: Maps, outs: Maps) -> Moved | None:
    """The last two axes of an operand change places: transposed, or no longer."""
    attrs = {}
    for name, moved in zip(("transpose_a", "transpose_b"), ins, strict=True):
        if moved is None:
            return None
        n = len(moved.parts)
        transposed = moved.permutation == (*range(n - 2), n - 1, n - 2)
        if not transposed and not moved.is_identity:
            return None
        attrs[name] = bool(op.attrs[name]) != transposed
    result = outs[0]
    return _plain(ins, outs, **attrs) if result is not None and result.is_identity else None


# Beside those on elements.
RULES: dict[str, Rule] = {
    "avg_pool2d": _pool,
    "batch_matmul": _batch_matmul,
    "batch_norm": _axis(),
    "bias_add": _axis(),
    "concatenate": _axis(0),
    "conv1d_transpose": _conv2d,
    "conv2d": _conv2d,
    "conv2d_transpose": _conv2d,
    "global_avg_pool2d": _pool,
    "layer_norm": _axis(),
    "lrn": _axis(),
    "max": _reduction,
    "max_pool2d": _pool,
    "mean": _reduction,
    "resize2d": _pool,
    "rms_norm": _axis(),
    "softmax": _axis(),
    "split": _axis(),
    "sum": _reduction,
    "transpose": _transpose,
}

# Kind -> the attributes whose meaning depends on a layout; an op on elements has none. Of a kind
# that is not here (an op that we have no name for), all of them may.
SENSITIVE: dict[str, tuple[str, ...]] = {
    "adaptive_avg_pool2d": ("layout",),
    "avg_pool2d": ("layout",),
    "batch_matmul": ("transpose_a", "transpose_b"),
    "batch_norm": ("axis",),
    "bias_add": ("axis",),
    "broadcast_to": ("shape",),
    "concatenate": ("axis",),
    "conv1d_transpose": ("data_layout", "kernel_layout", "out_layout"),
    "conv2d": ("data_layout", "kernel_layout", "out_layout"),
    "conv2d_transpose": ("data_layout", "kernel_layout", "out_layout"),
    "global_avg_pool2d": ("layout",),
    "layer_norm": ("axis",),
    "lrn": ("axis",),
    "max": ("axis",),
    "max_pool2d": ("layout",),
    "mean": ("axis",),
    "reshape": ("shape",),
    "resize2d": ("layout",),
    "rms_norm": ("axis",),
    "softmax": ("axis",),
    "split": ("axis",),
    "sum": ("axis",),
    "tile": ("repeats",),
    "transpose": ("axes",),
    **dict.fromkeys(("dense", "dequantize_groups", "matmul", "rotate_half", "tree_ensemble"), ()),
    "embedding": (),
    "fake_quantize_groups": (),
    **dict.fromkeys(("gru", "lstm", "peephole_lstm", "rnn"), ()),
}


def sensitive(kind: str, attrs: Attrs) -> tuple[str, ...]:
    """The layout-sensitive attributes of an op."""
    others = () if kind in elementwise_kinds() else tuple(attrs)
    return tuple(n for n in SENSITIVE.get(kind, others) if n in attrs)


def moved(kind: str, op: Before, ins: Maps, outs: Maps) -> Moved:
    """The op after its tensors moved: by its rule, or else unknown where they did."""
    rule = RULES.get(kind) or (_elementwise if kind in elementwise_kinds() else None)
    found = rule(op, ins, outs) if rule is not None else None
    if found is not None:
        return found

    def layout(moved: LayoutMap | None) -> Unknown | None:
        return None if moved is not None and moved.is_identity else UNKNOWN

    unknown = dict.fromkeys(sensitive(kind, op.attrs), UNKNOWN)
    return Moved(unknown, tuple(map(layout, ins)), tuple(map(layout, outs)))
