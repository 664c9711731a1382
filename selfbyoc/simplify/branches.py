"""Convolutions of the same image that are added up are one, whose weight is the sum of theirs.

    conv2d(x, v, padding=1) + conv2d(x, w) + batch_norm(x)  ->  conv2d(x, v + w + d, padding=1) + s

w and d, the diagonal that a batch norm is, are added to that tap of v which lies on their pixel.
Networks are trained so (RepVGG, MobileOne, FastViT) and often written to a file as they were
trained, their branches not merged. What else reads a branch has it as before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..ir.rewriting import Editor, Made, are_same, dtype
from ..ops.attrs import is_empty
from ..tvm.types import Attrs, Expr

MOVED = ("reshape", "expand_dims", "squeeze")


@dataclass(frozen=True, eq=False)
class Branch:
    """A convolution, and what is added to each channel of its result; without attributes the image
    itself, each channel by a factor.
    """

    image: Expr
    weight: np.ndarray  # [O, I, H, W], or [O] factors; of float64 once anything was done to it
    shift: np.ndarray  # [O]
    attrs: Attrs

    @property
    def window(self) -> tuple[int, ...]:
        """Rows and columns of taps."""
        return self.weight.shape[2:]

    def scaled(self, factor: np.ndarray, shift: np.ndarray) -> Branch:
        """Each channel by a factor, and more added to it."""
        by = factor.reshape(-1, *[1] * (self.weight.ndim - 1))
        return replace(self, weight=self.weight * by, shift=self.shift * factor + shift)


def without_branches(made: Made, to: Editor) -> Expr | None:
    """A sum of two branches as one convolution."""
    if made.kind != "add" or dtype(to, made.args[0]) != "float32":
        return None
    first, other = (_branch(x, to) for x in made.args)
    if first is None or other is None or not first.image.same_as(other.image):
        return None
    shape, broadcast = (to.shape(x) for x in made.args)
    if shape is None or broadcast is None or not are_same(shape, broadcast):
        return None
    found = _sum(first, other)
    return None if found is None else _written(found, to)


def _branch(x: Expr, to: Editor) -> Branch | None:
    """What a value is, where it is a convolution or a batch norm of constants."""
    made = to.source(x)
    if made is None:
        return None
    if made.kind == "conv2d":
        return _convolution(made, to)
    if made.kind == "batch_norm":
        return _normalised(made, to)
    before = _branch(made.args[0], to) if made.kind in ("add", "bias_add") else None
    more = None if before is None else _by_channel(made, to)
    if before is None or more is None or len(more) != len(before.shift):
        return None
    return replace(before, shift=before.shift + more)


def _convolution(made: Made, to: Editor) -> Branch | None:
    weight, attrs = to.array(made.args[1]), made.attrs
    if weight is None or weight.dtype != "float32" or not attrs:
        return None
    layouts = attrs["data_layout"], attrs["kernel_layout"]
    if layouts != ("NCHW", "OIHW") or not is_empty(attrs["out_dtype"]):
        return None
    return Branch(made.args[0], weight, np.zeros(len(weight)), attrs)


def _normalised(made: Made, to: Editor) -> Branch | None:
    """A batch norm of the first result, as a factor and a sum of what it reads."""
    found = [to.array(x) for x in made.args[1:5]]
    if made.attrs.get("axis") != 1 or any(array is None for array in found):
        return None
    gamma, beta, mean, variance = (np.asarray(array, "float64") for array in found)
    factor = gamma / np.sqrt(variance + made.attrs["epsilon"])
    image = Branch(made.args[0], np.ones_like(factor), np.zeros_like(factor), {})
    return (_branch(made.args[0], to) or image).scaled(factor, beta - mean * factor)


def _by_channel(made: Made, to: Editor) -> np.ndarray | None:
    """What is added to each channel, if it is a constant for each."""
    array = _constant(made.args[1], to)
    if array is None:
        return None
    if made.kind == "bias_add":
        return array.astype("float64") if made.attrs.get("axis") == 1 else None
    if array.ndim > 4:
        return None
    shape = (*[1] * (4 - array.ndim), *array.shape)
    is_one_each = shape == (1, array.size, 1, 1)
    return array.astype("float64").reshape(-1) if is_one_each else None


def _constant(x: Expr, to: Editor) -> np.ndarray | None:
    """What a constant holds, of which only the axes may have been written anew."""
    made, shape = to.made(x), to.shape(x)
    if made is None:
        return to.array(x)
    array = to.array(made.args[0]) if made.kind in MOVED else None
    return None if array is None or shape is None else array.reshape(shape)


def _sum(first: Branch, other: Branch) -> Branch | None:
    """Both as one; None where neither window lies in the other, or both are images."""
    large, small = (other, first) if other.window > first.window else (first, other)
    if not large.attrs:
        return None
    inside = small if small.attrs else _diagonal(small, large)
    place = None if inside is None else _place(large, inside)
    if inside is None or place is None:
        return None
    weight, (down, across) = large.weight.astype("float64"), place
    high, wide = inside.window
    weight[:, :, down : down + high, across : across + wide] += inside.weight
    return replace(large, weight=weight, shift=large.shift + inside.shift)


def _diagonal(image: Branch, like: Branch) -> Branch | None:
    """An image's factors as the weight of a window of one tap."""
    outputs, inputs = like.weight.shape[:2]
    if outputs != inputs * like.attrs["groups"] or outputs != len(image.weight):
        return None
    weight = np.zeros((outputs, inputs, 1, 1))
    channels = np.arange(outputs)
    weight[channels, channels % inputs, 0, 0] = image.weight
    attrs = {**like.attrs, "padding": (0, 0, 0, 0), "strides": (1, 1)}
    return replace(image, weight=weight, attrs=attrs)


def _place(large: Branch, small: Branch) -> tuple[int, int] | None:
    """The first tap, down and across, of the large window that the small one meets."""
    same = all(large.attrs[name] == small.attrs[name] for name in ("strides", "groups"))
    if not same or large.weight.shape[:2] != small.weight.shape[:2]:
        return None
    down, across = (_first_tap(large, small, axis) for axis in (0, 1))
    return None if down is None or across is None else (down, across)


def _first_tap(large: Branch, small: Branch, axis: int) -> int | None:
    step = large.attrs["dilation"][axis]
    if small.window[axis] > 1 and small.attrs["dilation"][axis] != step:
        return None
    tap, rest = divmod(large.attrs["padding"][axis] - small.attrs["padding"][axis], step)
    fits = not rest and 0 <= tap <= large.window[axis] - small.window[axis]
    return tap if fits else None


def _written(branch: Branch, to: Editor) -> Expr:
    weight, shift = (array.astype("float32") for array in (branch.weight, branch.shift))
    conv = to.emit("conv2d", branch.image, to.constant(weight), **branch.attrs)
    return to.emit("add", conv, to.constant(shift.reshape(1, -1, 1, 1)))
