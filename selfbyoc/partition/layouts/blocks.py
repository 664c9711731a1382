"""Tensors in layouts of blocks (ops/layout_text.py): their extents, text, and other layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...ops.layout_text import Parts
from ...tvm.types import PrimExpr


def plain(rank: int) -> Parts:
    """Each axis where it is."""
    return tuple((axis, 0) for axis in range(rank))


def is_blocked(parts: Parts) -> bool:
    """Whether an axis is in several places."""
    return any(size for _, size in parts)


def text_of(parts: Parts) -> str:
    """A layout as TVM writes it, its axes A, B, C, ..."""
    return "".join(f"{size}{chr(97 + a)}" if size else chr(65 + a) for a, size in parts)


def block_of(parts: Parts, axis: int) -> int:
    """How many elements of an axis are in its blocks."""
    return math.prod(size for a, size in parts if a == axis and size)


def rank_of(parts: Parts) -> int:
    """The number of axes."""
    return sum(not size for _, size in parts)


def divides(parts: Parts, shape: Sequence[PrimExpr] | None) -> bool:
    """Whether blocks are whole: of others TVM fills the last one."""
    if shape is None or len(shape) != rank_of(parts):
        return False
    blocks = [block_of(parts, axis) for axis in range(len(shape))]
    return all(b == 1 or (isinstance(e, int) and e % b == 0)
               for b, e in zip(blocks, shape, strict=True))  # fmt: skip


def joined(shape: Sequence[PrimExpr], parts: Parts) -> list[PrimExpr]:
    """The plain shape of a tensor that has this one in parts."""
    found: list[PrimExpr] = [1] * rank_of(parts)
    for extent, (axis, _) in zip(shape, parts, strict=True):
        is_open = extent is None or found[axis] is None
        found[axis] = None if is_open else found[axis] * extent
    return found


def through(source: Parts, target: Parts, seen: Parts) -> Parts | None:
    """A tensor that is `seen` so, moved from `source` to `target`: how it is seen then. None where
    the two speak of different blocks.
    """
    if [size for _, size in source] != [size for _, size in seen]:
        return None
    axes = {a: b for (a, _), (b, _) in zip(source, seen, strict=True)}
    if any(axes[a] != b for (a, _), (b, _) in zip(source, seen, strict=True)):
        return None
    return tuple((axes[axis], size) for axis, size in target)


def behind(parts: Parts, rank: int) -> Parts | None:
    """The last `rank` parts, as a tensor of these alone has them; None if that cuts an axis."""
    last = parts[len(parts) - rank :]
    axes = sorted({axis for axis, _ in last})
    if any((axis, 0) not in last for axis in axes) or any(
        axis in axes for axis, _ in parts[: len(parts) - rank]
    ):
        return None
    return tuple((axes.index(axis), size) for axis, size in last)


def unblocked(
    array: np.ndarray, parts: Parts, shape: Sequence[PrimExpr] | None = None
) -> np.ndarray | None:
    """A constant in its plain layout, for a tensor of a plain `shape` where it is broadcast to one.
    None where it repeats what is not known to be whole.
    """
    if len(parts) != array.ndim:
        return None
    order = sorted(range(len(parts)), key=lambda at: (parts[at][0], at))
    whole: list[int] = []
    for axis in range(rank_of(parts)):
        own = [(array.shape[at], parts[at][1]) for at in order if parts[at][0] == axis]
        if all(extent == 1 for extent, _ in own):
            whole += [1] * len(own)
            continue
        (outer, _), *blocks = own
        if outer == 1 and shape is not None:
            outer = _count(shape[axis], block_of(parts, axis))
        whole += [outer, *(size for _, size in blocks)]
    if 0 in whole:
        return None
    axes = [[n for n, at in enumerate(order) if parts[at][0] == axis] for axis in
            range(rank_of(parts))]  # fmt: skip
    moved = np.broadcast_to(array.transpose(order), whole)
    return np.ascontiguousarray(moved).reshape([math.prod(whole[n] for n in own) for own in axes])


def _count(extent: PrimExpr, block: int) -> int:
    """How many blocks an extent has; 0 where that is not known."""
    return extent // block if isinstance(extent, int) else 0
