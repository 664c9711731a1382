"""Checks of sizes that composites share: what their computes take for granted."""

from __future__ import annotations

from ...language.composite import require
from ...language.match.match import Match
from ...ops.vocabulary import elementwise_kinds


def check_sizes(match: Match) -> None:
    """What is added to a result of the group, or multiplied with it, is no larger than that."""
    inside = {value for call in match.ops for value in call.outputs}
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
    pixel, are faster apart (480x7x7, 3x3 and hard-swish: 147 us joined, 82 apart, AVX-512).
    """
    last = match.own.root.outputs[0]
    convs = match.of("conv2d")
    apart = not convs or (convs[-1].attrs["groups"] > 1 and convs[-1].inputs[1].shape[1] == 1)
    require(
        not apart or last.shape[-1] >= LEAST_ROW,
        f"rows of {last.shape[-1]} pixels are stored one by one, and ops on them are faster apart",
    )
