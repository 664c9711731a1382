"""Levels under the padding of a convolution, which has to hold their zero point."""

from __future__ import annotations

from ..ir.rewriting import Editor, Made, cast, dtype, size_one
from ..ops.attrs import is_empty, plain
from ..tvm.types import Expr
from .level_values import is_level

# Ops that give elements of their first input, by the names of either TVM.
MOVES = frozenset(
    {"expand_dims", "flatten", "layout_transform", "nn.batch_flatten", "nn.max_pool1d",
     "nn.max_pool2d", "permute_dims", "reshape", "squeeze", "strided_slice", "transpose"}
)  # fmt: skip


def moves(made: Made) -> bool:
    """Whether an op only moves or compares elements; a resize that takes the nearest pixel does."""
    if made.name != "image.resize2d":
        return made.name in MOVES
    is_nearest = str(made.raw["method"]) == "nearest_neighbor"
    return is_nearest and is_empty(plain(made.raw["out_dtype"]))


def pads(name: str) -> bool:
    """Whether an op, by its name, has padding that holds the zero point."""
    return name.startswith("nn.conv")


def held(image: Expr, to: Editor) -> Expr:
    """A convolution's input: floats that ops make, where padding could not hold a zero point."""
    made = to.made(image)
    if made is None or made.kind != "dequantize":
        return image
    levels, scale, zero = made.args
    if holds(levels, zero, to):
        return image
    axis, behind = int(made.raw["axis"]), len(to.shape(levels) or ())
    scale, zero = (_along(factor, axis, behind, to) for factor in (scale, zero))
    centred = to.emit("subtract", *(cast(to, value, "int32") for value in (levels, zero)))
    floats = to.emit("multiply", cast(to, centred, "float32"), scale)
    return cast(to, floats, str(made.raw["out_dtype"]))


def holds(levels: Expr, zero: Expr, to: Editor) -> bool:
    """Whether a byte of the levels' dtype holds their zero point; qnn has that in int32."""
    array, first = to.array(zero), zero
    while (before := to.made(first)) is not None and before.name in MOVES:
        first = before.args[0]
    wide = dtype(to, first) == "int32"
    if wide and before is not None and before.kind == "cast":
        first = before.args[0]
    return is_level(array, dtype(to, first), dtype(to, levels))


def _along(factor: Expr, axis: int, ndim: int, to: Editor) -> Expr:
    """One number, or those of an axis, beside all others."""
    if to.shape(factor) == []:
        return factor
    shape = () if size_one(to, factor) else (-1, *[1] * ((-1 - axis) % ndim))
    return to.emit("reshape", factor, shape=shape)
