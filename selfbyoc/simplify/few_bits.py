"""Weights of dense layers as levels of few bits in groups: `build(mod, weights="int4")`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..ir.generation import rewritten
from ..ir.rewriting import Editor, Made, are_same
from ..ops.few_bits import ONE_FOR_ALL
from ..tvm.types import Expr, IRModule
from .embeddings import table_to_hold
from .weights import constant_behind, out_dtype, weight_by_units

Array = np.ndarray
Levels = tuple[Array, Array, Array]
NAMES = {"int4": 4, "int8": 8}
LEAST = 1024  # elements; of less there is nothing to save


def takes(weight: Array) -> bool:
    """Whether a weight [units, depth] is held so."""
    return (
        weight.ndim == 2
        and weight.dtype == np.float32
        and weight.size >= LEAST
        and bool(np.isfinite(weight).all())
    )


def in_groups(weight: Array, bits: int, group: int) -> Levels:
    """-> levels, scales and zero points: of each group from its least to its greatest element, and
    0, which stays what it is.
    """
    groups = _groups(weight, group)
    low, high = np.minimum(groups.min(axis=2), 0), np.maximum(groups.max(axis=2), 0)
    most = (1 << bits) - 1
    scale = _half(_or_least((high - low) / most))
    wide = scale.astype(np.float64)
    zero = np.clip(np.rint(-low / wide), 0, most)
    levels = np.clip(np.rint(groups / wide[..., None]) + zero[..., None], 0, most)
    return _flat(levels, weight), scale, zero.astype(np.uint8)


def around_zero(weight: Array, bits: int, group: int) -> Levels:
    """The same with one zero point, the middle level: a group's largest magnitude is level 0, of
    either sign, as in Q4_0 of llama.cpp and MatMulNBits of ONNX Runtime.
    """
    groups = _groups(weight, group)
    low, high = groups.min(axis=2), groups.max(axis=2)
    middle = 1 << (bits - 1)
    furthest = np.where(-low > high, low, high)
    scale = _half(_or_least(furthest / -middle))
    levels = np.rint(groups / scale.astype(np.float64)[..., None]) + middle
    zero = np.full(ONE_FOR_ALL, middle, np.uint8)
    return _flat(levels.clip(0, 2 * middle - 1), weight), scale, zero


def _or_least(scale: Array) -> Array:
    """Scales; that of a group of zeros is as small as a half can be, or as the least of the others:
    it magnifies what is rounded when the zero point is taken off. A token of padding has a unit of
    zeros.
    """
    size = np.abs(scale)
    least = size.min(initial=float(np.finfo(np.float16).tiny), where=size > 0)
    return np.where(size > 0, scale, least)


def _groups(weight: Array, group: int) -> Array:
    """[units, groups, group] in float64, zeros after the last element."""
    units, depth = weight.shape
    count = -(-depth // group)
    padded = np.pad(weight, ((0, 0), (0, count * group - depth)))
    return padded.reshape(units, count, group).astype(np.float64)


def _flat(levels: Array, weight: Array) -> Array:
    """[units, depth] again."""
    units, depth = weight.shape
    return np.ascontiguousarray(levels.reshape(units, -1)[:, :depth].astype(np.uint8))


def _half(scale: Array) -> Array:
    """Scales as float16, which is a third of what 32 weights of 4 bits are with two of float32; as
    float32 where one is too large or loses digits.
    """
    limits = np.finfo(np.float16)
    size = np.abs(scale)
    fits = bool(((limits.tiny <= size) & (size <= limits.max)).all())
    return scale.astype(np.float16 if fits else np.float32)


def with_few_bits(
    mod: IRModule, bits: int, group: int, activations: str, symmetric: bool
) -> IRModule:
    """The prepared module; constant weights of its dense layers are levels, and so is what they are
    multiplied by, where activations are "int8". So are tables of embeddings: as the product's that
    multiplies by one, else in 8 bits, as what is rounded first goes through all layers.
    """
    floats = _Floats(group, around_zero if symmetric else in_groups)

    def held(made: Made, to: Editor) -> Expr | None:
        if (found := _rows_of_levels(made, to, floats, bits)) is not None:
            return found
        weight = weight_by_units(made, to)
        if weight is None or not takes(weight) or len(to.shape(made.args[0]) or ()) < 2:
            return None
        x = made.args[0]
        merging = _merged_rows(x, to)
        if activations == "int8":
            x = to.emit(
                "fake_quantize_groups", x if merging is None else merging.args[0], group=group
            )
            x = x if merging is None else to.again(merging, [x, *merging.args[1:]])
        levels = floats(constant_behind(made.args[1], to), weight, bits, to)
        return to.emit("dense", x, levels, out_dtype=out_dtype(made))

    return rewritten(mod, held)


class _Floats:
    """Of a weight as levels in groups; those of a shared table are kept for its product."""

    def __init__(self, group: int, levels_of: Callable[[Array, int, int], Levels]) -> None:
        self.group, self.levels_of = group, levels_of
        self.kept: dict[Expr, Levels] = {}

    def __call__(
        self, node: Expr, weight: Array, bits: int, to: Editor, *, keeps: bool = False
    ) -> Expr:
        """`node` is the constant."""
        found = self.kept.get(node) or self.levels_of(weight, bits, self.group)
        if keeps:
            self.kept[node] = found
        constants = map(to.constant, found)
        return to.emit("dequantize_groups", *constants, bits=bits, group=self.group)


def _rows_of_levels(made: Made, to: Editor, floats: _Floats, bits: int) -> Expr | None:
    """The look-up of rows of levels."""
    table, is_shared = table_to_hold(made, to)
    if table is None or not takes(table):
        return None
    bits = bits if is_shared else max(NAMES.values())
    held = floats(made.args[0], table, bits, to, keeps=is_shared)
    return to.emit("embedding", held, made.args[1])


def _merged_rows(x: Expr, to: Editor) -> Made | None:
    """The reshape that merges rows, which a dense layer of any number of axes does without: nothing
    stands between both.
    """
    made, shape = to.made(x), to.shape(x)
    if made is None or made.kind != "reshape" or not shape:
        return None
    before = to.shape(made.args[0])
    return made if before and are_same(before[-1:], shape[-1:]) else None
