"""Col2Im, windows added up to an image, as the transposed convolution that it is: each channel by
itself, of weights that put each element of a window at its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .claims import check_room
from .graph import Graph, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _col2im(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    shape, dtype = graph.shape(node.input[0]), graph.dtype(node.input[0])
    sizes = [graph.constant(name) for name in node.input[1:]]
    image, window = ([] if each is None else each.tolist() for each in sizes)
    if shape is None or dtype is None or dtype.kind != "f" or not image or not window:
        return None
    given, ones = attributes(node), [1] * len(image)
    strides, dilations = given.get("strides", ones), given.get("dilations", ones)
    pads = given.get("pads", [0] * 2 * len(image))
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, window, strict=True)]
    sides = zip(image, pads[: len(image)], pads[len(image) :], reach, strict=True)
    rooms = [size + begin + end - wide for size, begin, end, wide in sides]
    places = [room // stride + 1 for room, stride in zip(rooms, strides, strict=True)]
    more = [room % stride for room, stride in zip(rooms, strides, strict=True)]
    check_room(node, shape[1], *reach, itemsize=dtype.itemsize)
    one = np.zeros((math.prod(window), 1, *reach), dtype)
    for n, place in enumerate(np.ndindex(*window)):
        one[(n, 0, *(d * at for d, at in zip(dilations, place, strict=True)))] = 1
    channels = shape[1] // len(one)
    steps = Steps(graph, node)
    found = steps(
        "ConvTranspose",
        steps("Reshape", node.input[0], [*shape[:2], *places]),
        np.concatenate([one] * channels),
        group=channels, strides=strides, pads=pads, output_padding=more,
    )  # fmt: skip
    return steps.instead(found)


FORMS = {"Col2Im": _col2im}
