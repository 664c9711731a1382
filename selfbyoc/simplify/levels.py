"""Levels before anything is matched: what quantisers write, as kernels read it.

- A zero point that is the same for every channel is one number.
- Each reader of dequantised levels dequantises them itself: one that computes with a kernel is part
  of it, and no float image is stored for two. Elementwise readers share theirs: x * sigmoid(x) is
  one op of one x.
- What only moves or compares elements works on the levels: max_pool(dequantize(x)) is
  dequantize(max_pool(x)), quantize(max_pool(x)) is max_pool(quantize(x)), and of what is joined
  each part is quantised. quantize(dequantize(x)) of one scale and zero point is x.
- A bias of 32 bits is one of floats; so is a weight of 16.
- A zero point that may be no level, which a convolution's padding could not hold, is subtracted by
  an op.
- A weight of bytes that counts from another place than the middle of its dtype counts from 0: in
  bytes where it fits, else as int16 of -255 to 255, whose products are of two levels at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.rewriting import Editor, Made, dtype, size_one
from ..ops.vocabulary import is_declared
from ..tvm.types import Expr
from .level_values import (
    alike,
    around_zero,
    dequantised,
    is_middle,
    made_of,
    one_number,
    stays,
)  # fmt: skip
from .padded_levels import held, moves, pads
from .weights import is_swap, out_dtype

DEQUANTIZES = ("dequantize", "dequantize_groups")  # what makes floats of a weight's levels
# Of which functions of one value are written: silu, hard-swish, gelu, lrn.
_ELEMENTWISE = frozenset(
    {"clip", "divide", "erf", "maximum", "minimum", "multiply", "power", "sigmoid", "sqrt",
     "square", "subtract", "tanh"}
)  # fmt: skip


def shares(name: str, beside: Sequence[bool]) -> bool:
    """Whether a reader, by its op's name, computes with the value that other such readers have;
    `beside` says of each of its inputs whether it is a constant.
    """
    return name in _ELEMENTWISE or (name == "add" and any(beside))


def is_dequantized(made: Made | None) -> bool:
    """Whether a call makes float32 of levels."""
    return made is not None and made.kind == "dequantize" and _to(made) == "float32"


class LevelsAsRead:
    """Each reader has its own dequantize; moves are of levels; zero points are numbers."""

    def __init__(self) -> None:
        self.read: set[Expr] = set()  # the dequantised values that somebody reads
        self.shared: dict[Any, Expr] = {}  # and what their elementwise readers have

    def __call__(self, made: Made, to: Editor) -> Expr | None:
        """A call over its own dequantised values, or of levels instead."""
        found = self._of_levels(made, to)
        if found is not None:
            return found
        args = list(made.args)
        if made.kind in ("quantize", "dequantize"):
            args[2] = number(args[2], to)
        if pads(made.name):
            args[0] = held(args[0], to)
        beside = [to.array(arg) is not None for arg in args]
        own = self._shared if shares(made.name, beside) else self._own
        args = [own(arg, to) for arg in args]
        same = all(new is old for new, old in zip(args, made.args, strict=True))
        return None if same else to.again(made, args)

    def _of_levels(self, made: Made, to: Editor) -> Expr | None:
        if made.kind == "quantize":
            return self._known(made, made.args[0], to)
        if made.kind == "dequantize":
            return _constant(made, to)
        if made.kind == "matmul":
            return self._by_units(made, to)
        return _moved(made, to) if moves(made) else None

    def _shared(self, arg: Expr, to: Editor) -> Expr:
        made = to.made(arg)
        if made is None or made.kind != "dequantize":
            return arg
        key = made_of(made.args[0], [to.array(factor) for factor in made.args[1:]]) or arg
        if key not in self.shared:
            self.shared[key] = self._own(arg, to)
        return self.shared[key]

    def _own(self, arg: Expr, to: Editor) -> Expr:
        fields = to.fields(arg)
        if fields is not None:
            owned = [self._own(field, to) for field in fields]
            same = all(new is old for new, old in zip(owned, fields, strict=True))
            return arg if same else to.joined(owned)
        made = to.made(arg)
        if made is None or made.kind != "dequantize":
            return arg
        if arg not in self.read:
            self.read.add(arg)
            return arg
        return to.again(made, made.args)

    def _known(self, made: Made, value: Expr, to: Editor) -> Expr | None:
        """A quantize of what was just dequantised alike: the levels that it was made of. One of
        what was moved, or joined: that, of levels.
        """
        before = to.made(value)
        if before is None:
            return None
        if moves(before) or before.kind == "concatenate":
            return self._earlier(made, before, to)
        # Of fewer bits than 32 it might give a neighbour.
        if not is_dequantized(before) or dtype(to, before.args[0]) != _to(made):
            return None
        arrays = [[to.array(factor) for factor in each.args[1:]] for each in (before, made)]
        return before.args[0] if alike(zip(*arrays, strict=True)) else None

    def _earlier(self, made: Made, before: Made, to: Editor) -> Expr | None:
        if not _is_of_one(made, to):
            return None
        moved, *others = before.args
        if before.kind != "concatenate":
            return to.again(before, [self._quantized(made, moved, to), *others])
        parts = to.fields(moved)
        if parts is None:
            return None
        levels = to.joined([self._quantized(made, part, to) for part in parts])
        return to.again(before, [levels, *others])

    def _quantized(self, made: Made, value: Expr, to: Editor) -> Expr:
        """What a quantize makes of another value."""
        known = self._known(made, value, to)
        if known is not None:
            return known
        return to.again(made, [self._own(value, to), made.args[1], number(made.args[2], to)])

    def _by_units(self, made: Made, to: Editor) -> Expr | None:
        """x @ dequantize(w) as a dense layer has it: [units, in], transposed by an op."""
        before = to.made(made.args[1])
        turned = None if before is None else _turned(before, to)
        if turned is None and before is not None:
            turned = _computed(before, to)
        if turned is None:
            return None
        x = self._own(made.args[0], to)
        return to.emit("dense", x, turned, out_dtype=out_dtype(made))


def _moved(made: Made, to: Editor) -> Expr | None:
    """A move of dequantised levels as one of the levels, dequantised after it."""
    before = to.made(made.args[0])
    if before is None or before.kind != "dequantize":
        return None
    if to.array(before.args[0]) is not None:
        # A weight's is read as part of the product; dense layers of some TVMs have it by units.
        if not is_declared("nn.dense"):
            return None
        turned = _turned(before, to) if is_swap(made) else None
        if turned is not None:
            return turned
    if not _is_of_one(before, to):
        return None
    moved = to.again(made, [before.args[0], *made.args[1:]])
    return to.emit("dequantize", moved, *before.args[1:], axis=-1, out_dtype=_to(before))


def _turned(before: Made, to: Editor) -> Expr | None:
    """Constant levels of two axes, dequantised transposed."""
    array = to.array(before.args[0]) if before.kind == "dequantize" else None
    if array is None or array.ndim != 2:
        return None
    turned = to.constant(np.ascontiguousarray(array.T))
    axis = 1 - int(before.raw["axis"]) % 2
    return to.emit("dequantize", turned, *before.args[1:], axis=axis, out_dtype=_to(before))


def _computed(before: Made, to: Editor) -> Expr | None:
    """Levels of two axes that are computed, of one scale, dequantised transposed."""
    if before.kind != "dequantize" or len(to.shape(before.args[0]) or ()) != 2:
        return None
    if to.array(before.args[0]) is not None or not all(size_one(to, v) for v in before.args[1:]):
        return None
    turned = to.emit("transpose", before.args[0], axes=(1, 0))
    return to.emit("dequantize", turned, *before.args[1:], axis=-1, out_dtype=_to(before))


def _constant(made: Made, to: Editor) -> Expr | None:
    """Constant levels as kernels take them: a bias as floats, a weight from its middle."""
    arrays = [array for arg in made.args if (array := to.array(arg)) is not None]
    if len(arrays) < len(made.args) or not is_dequantized(made):
        return None
    (levels, _, zero), axis = arrays, int(made.raw["axis"])
    if not stays(levels):
        return to.constant(dequantised(arrays, axis))
    moved = None if is_middle(zero, str(levels.dtype)) else around_zero(levels, zero, axis)
    if moved is None:
        return None
    none = np.zeros((), "int32" if zero.dtype == np.int32 else "int8")
    around = to.constant(moved), made.args[1], to.constant(none)
    return to.emit("dequantize", *around, axis=axis, out_dtype="float32")


def _is_of_one(made: Made, to: Editor) -> bool:
    """Whether a known scale and a zero point are those of all, and order stays."""
    scale = to.array(made.args[1])
    is_one = scale is not None and scale.size == 1 and bool(scale.flat[0] > 0)
    return is_one and size_one(to, made.args[2])


def number(zero: Expr, to: Editor) -> Expr:
    """A zero point that is the same for every channel as one number."""
    array = to.array(zero)
    number = None if array is None else one_number(array)
    return zero if number is None else to.constant(np.asarray(number))


def _to(made: Made) -> str:
    """The dtype that levels, or floats, are made of."""
    return str(made.raw["out_dtype"])
