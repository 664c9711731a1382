"""Which pointwise convolutions around a depthwise one are of words of two bfloat16."""

from __future__ import annotations

from ....codegen.info.ops import Ops, OpView
from ....machine import Machine
from ....tvm.types import Shape
from ...steps.tiles import blocks_of
from ..bfloat16 import WORD
from ..conv import rounded
from ..words import words_of

FOLDS = (1, 2)  # steps of a sum side by side in a vector


def is_of_words(ops: Ops, conv: OpView, cpu: Machine) -> bool:
    """As of any convolution; a weight that came packed may have two steps side by side."""
    packing, weight = ops.packing(conv, 1), conv.inputs[1][0]
    if packing.shape is None or not packing.as_held:
        return rounded.is_of_words(ops, conv, cpu)
    return as_packed(packing.shape, weight)[0]


def as_packed(shape: Shape, weight: Shape) -> tuple[bool, int]:
    """Whether a packed weight [O, I, ...] is of words, and its steps side by side: these make more
    blocks of all outputs that may have words.
    """
    blocks, steps = shape[:2]
    out, channels = weight[:2]
    folds = [fold for fold in FOLDS if blocks == blocks_of(out * fold)]
    has_words = rounded.may_pay(weight)
    for fold in folds:
        if has_words and steps * fold == words_of(channels, WORD):
            return True, fold
    return False, channels // steps


def both_of_words(ops: Ops, cpu: Machine) -> tuple[bool, bool]:
    """Whether the expansion and the projection are of words; a depthwise convolution never is."""
    first, *_, project = ops.of("conv2d")
    return is_of_words(ops, first, cpu), is_of_words(ops, project, cpu)
