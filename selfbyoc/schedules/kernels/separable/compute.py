"""The inverted residual and the depthwise separable convolution as one kernel.

By blocks of channels (separable_stages.py), or stage by stage where a window, a stride or a padding
is not of that form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...._tvm import te
from ....machine import machine_at_hand
from ..conv import direct
from .expand import expanded, framed, from_image, from_sums
from .form import Form, in_chunks
from .layers import Layer, is_first, is_pointwise, layers, unfolded
from .stages import projected, result, windows

TAPS = 25  # of a window that is written out; more only grow the code
# Outputs of the pointwise convolution for each element of an image that is turned over: turning
# takes some 2 cycles, 128 products 4.
TURNED = 128

Tensor = Any


def inverted_residual(x: Tensor, ops: Any, **args: Tensor) -> Tensor:
    """Expand, depthwise, project, and the residual if the block has one."""
    expand, depth, project = layers(ops, args, ("expand", "depth", "project"))
    residual = x if any(call.kind == "add" for call in ops) else None
    return block(x, [expand, depth, project], residual, list(ops)[-1].name)


def depthwise_pointwise(x: Tensor, ops: Any, **args: Tensor) -> Tensor:
    """Depthwise, then pointwise."""
    return block(x, layers(ops, args, ("depth", "point")), None, list(ops)[-1].name)


def block(x: Tensor, convs: Sequence[Layer], residual: Tensor | None, name: str) -> Tensor:
    """By blocks of channels, or stage by stage."""
    form = form_of([layer.conv for layer in convs])
    if form is None:
        return staged(x, convs, residual, name)
    *expand, depth, project = convs
    batch, blocks = int(x.shape[0]), int(depth.weight.shape[0])
    if expand:
        read = from_sums(expanded(x, expand[0], form), expand[0], form)
    else:
        read = from_image(x, form)
    image = framed(read, batch, blocks, form, depth.conv.name)
    return result(projected(windows(image, depth, form), project), project, form, residual, name)


def form_of(convs: Sequence[Any]) -> Form | None:
    """Where the windows lie; None for convolutions that only run stage by stage."""
    *expand, depth, project = convs
    image, out = depth.inputs[0][0], depth.outputs[0][0]
    window = depth.inputs[1][0][2:]
    pads = depth.attrs["padding"]
    reach = [(window[n] - 1) * depth.attrs["dilation"][n] for n in (0, 1)]
    plain = is_pointwise(project) and math.prod(window) <= TAPS
    plain = plain and all(is_pointwise(conv) or is_first(conv) for conv in expand)
    # One channel out for each one in, and no window that lies in the padding alone.
    plain = plain and image[1] == out[1] and all(p <= reach[i % 2] for i, p in enumerate(pads))
    if not plain:
        return None
    strides, dilation = depth.attrs["strides"], depth.attrs["dilation"]
    form = Form(image[2:], out[2:], window, strides, dilation, pads[:2], out[2])
    form = in_chunks(form, out[0], out[1], machine_at_hand())
    return form if expand or _pays_turning(form, project) else None


def _pays_turning(form: Form, project: Any) -> bool:
    """Whether to turn over an image that no pointwise convolution has turned over already.

    Two cores of Zen 5, by blocks and stage by stage, us: 32x112x112 to 64 channels 250 and 179,
    64x112x112 to 128 at stride 2 272 and 178; 128x56x56 324 and 261; four of 256x28x28 1168 and
    1035; 512x14x14 244 and 242; 1024x7x7 230 and 251.
    """
    return form.chunks == 1 and project.outputs[0][0][1] >= TURNED * math.prod(form.strides)


def staged(x: Tensor, convs: Sequence[Layer], residual: Tensor | None, name: str) -> Tensor:
    """One convolution behind the other."""
    for layer in convs:
        out, weight = layer.conv.outputs[0][0], layer.weight
        if int(weight.shape[1]) < layer.channels:
            weight = unfolded(weight, out[1], layer.channels)
        sums = direct.convolution(x, weight, layer.conv.attrs, out, layer.conv.name)
        last = layer is convs[-1]
        x = _activated(sums, layer, residual if last else None, name if last else "")
    return x


def _activated(sums: Tensor, layer: Layer, residual: Tensor | None, name: str) -> Tensor:
    def element(n: Any, o: Any, y: Any, x: Any) -> Any:
        value = layer.applied(sums(n, o, y, x), o)
        return value if residual is None else value + residual(n, o, y, x)

    return te.compute(sums.shape, element, name=name or f"{layer.conv.name}_activated")
