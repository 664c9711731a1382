"""Checks of sizes that composites share: what their computes take for granted."""

from __future__ import annotations

from typing import Any

from ...language.composite import require
from ...ops.vocabulary import elementwise_kinds


def check_sizes(match: Any) -> None:
    """What is added to a result of the group, or multiplied with it, is no larger than that."""
    inside = {id(value) for call in match.ops for value in call.outputs}
    kinds = elementwise_kinds()
    for call in match.ops:
        out = call.outputs[0]
        for value in call.inputs if call.kind in kinds else ():
            grows = id(value) in inside and value.shape != out.shape
            require(not grows, f"{call.name} makes {out.type} of {value.type} by broadcasting")


def check_steps(match: Any) -> None:
    """A convolution reads all of what another one of the group computes: pixels between its windows
    would be computed for nobody, and a task's part of them is no box.
    """
    inside = {id(value) for call in match.ops for value in call.outputs}
    for conv in match.of("conv2d"):
        if id(conv.inputs[0]) not in inside:
            continue
        layout, steps = conv.attrs["kernel_layout"], conv.attrs["strides"]
        sizes = [conv.inputs[1].shape[layout.index(axis)] for axis in "HW"]
        for size, step, apart in zip(sizes, steps, conv.attrs["dilation"], strict=True):
            reach = (size - 1) * apart + 1
            require(step <= reach, f"{conv.name} skips pixels: steps of {step}, windows of {reach}")
