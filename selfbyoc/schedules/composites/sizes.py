"""Checks of sizes that composites share: what their computes take for granted."""

from __future__ import annotations

import math

from ...graph import OpCall
from ...language.composite import require
from ...language.match.match import Match
from ...ops.vocabulary import elementwise_kinds


def check_sizes(match: Match) -> None:
    """What is added to a result of the group, or multiplied with it, is no larger than that. A mask
    that is repeated is no result.
    """
    inside = {value for call in match.ops for value in call.outputs if call.kind != "tile"}
    kinds = elementwise_kinds()
    for call in match.ops:
        out = call.outputs[0]
        for value in call.inputs if call.kind in kinds else ():
            grows = value in inside and value.shape != out.shape
            require(not grows, f"{call.name} makes {out.type} of {value.type} by broadcasting")


def check_steps(match: Match) -> None:
    """A convolution reads all of what another one of the group computes: pixels between its windows
    would be computed for nobody, and a task's part of them is no box.
    """
    inside = {value for call in match.ops for value in call.outputs}
    for conv in match.of("conv2d"):
        if conv.inputs[0] not in inside:
            continue
        layout, steps = conv.attrs["kernel_layout"], conv.attrs["strides"]
        sizes = [conv.inputs[1].shape[layout.index(axis)] for axis in "HW"]
        for size, step, apart in zip(sizes, steps, conv.attrs["dilation"], strict=True):
            reach = (size - 1) * apart + 1
            require(step <= reach, f"{conv.name} skips pixels: steps of {step}, windows of {reach}")


LEAST_ROW = 8  # pixels


def check_rows(match: Match) -> None:
    """What is computed channel by channel is stored row by row: ops on short ones, stored pixel by
    pixel, are faster apart (480x7x7, 3x3 and hard-swish: 147 us joined, 82 apart, AVX-512). With
    groups as lanes an image is stored as one row (960x7x7, 5x5: 83 joined, 92 apart, AVX2).
    """
    last, convs = match.own.root.outputs[0], match.of("conv2d")
    if convs and not _is_depthwise(convs[-1]):
        return
    is_flat = bool(convs) and _has_groups_as_lanes(convs[-1])
    row = math.prod(extent or 1 for extent in last.shape[-2:]) if is_flat else last.shape[-1]
    require(
        row >= LEAST_ROW,
        f"rows of {row} pixels are stored one by one, and ops on them are faster apart",
    )


def _has_groups_as_lanes(conv: OpCall) -> bool:
    """Whether a depthwise convolution of rows so short has: of floats, its weight packed ahead."""
    image, weight = conv.inputs[:2]
    return weight.is_constant and image.dtype == "float32"


def _is_depthwise(conv: OpCall) -> bool:
    """Whether each channel is computed of one alone."""
    return conv.attrs["groups"] > 1 and conv.inputs[1].shape[1] == 1
