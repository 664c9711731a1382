"""Forms of pools and convolutions: where their windows lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .checks import IS_RELAY
from .gathered import places_of_maxima
from .graph import Graph, attributes, remade
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _output_shape(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """ConvTranspose to a shape: the pads that lead there, by ONNX's formula."""
    given = attributes(node)
    image, weight = graph.shape(node.input[0]), graph.shape(node.input[1])
    if "output_shape" not in given or image is None or weight is None:
        return None
    ones = [1] * (len(image) - 2)
    strides, dilations = given.get("strides", ones), given.get("dilations", ones)
    more = given.get("output_padding", [0] * len(ones))
    wanted = given.pop("output_shape")[-len(ones) :]
    total = [
        s * (e - 1) + m + (k - 1) * d + 1 - w
        for s, e, m, k, d, w in zip(
            strides, image[2:], more, weight[2:], dilations, wanted, strict=True
        )
    ]
    more = [m + max(-t, 0) for m, t in zip(more, total, strict=True)]
    room = [max(t, 0) for t in total]
    pads = _parted(room, given.pop("auto_pad", b"NOTSET"))
    return [remade(node, attributes=given | {"pads": pads, "output_padding": more})]


def _pads(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A pool's or a convolution's auto_pad as pads: 0.27's frontend has fewer windows of a pool
    under SAME_LOWER, and pads in front of a convolution, which its kernel does.
    """
    given, image = attributes(node), graph.image(node.input[0])
    if given.get("auto_pad") not in (b"SAME_LOWER", b"SAME_UPPER") or image is None:
        return None
    window = given.get("kernel_shape") or (graph.shape(node.input[1]) or ())[2:]
    if len(window) != len(image):
        return None
    ones = [1] * len(image)
    steps, apart = given.get("strides", ones), given.get("dilations", ones)
    room = [
        max((-(-e // s) - 1) * s + (k - 1) * d + 1 - e, 0)
        for e, s, k, d in zip(image, steps, window, apart, strict=True)
    ]
    given["pads"] = _parted(room, given.pop("auto_pad"))
    given.pop("ceil_mode", None)
    return [remade(node, attributes=given)]


def _parted(room: Sequence[int], auto_pad: bytes) -> list[int]:
    """Pads of which the larger halves are at the end (SAME_UPPER), or at the beginning."""
    first = [t // 2 if auto_pad == b"SAME_UPPER" else (t + 1) // 2 for t in room]
    return [*first, *(t - f for t, f in zip(room, first, strict=True))]


def _power_of_size(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """0.17's frontend takes powers of the numbers, where ONNX takes those of their sizes."""
    if not IS_RELAY:
        return None
    steps = Steps(graph, node)
    size = steps("Abs", node.input[0])
    return [*steps.nodes, remade(node, inputs=[size])]


def _power_pool(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    (padded,) = _pads(node, graph) or [node]
    found = _power_of_size(padded, graph)
    return found or (None if padded is node else [padded])


def _max_pool(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    (padded,) = _pads(node, graph) or [node]
    found = places_of_maxima(padded, graph)
    return found or (None if padded is node else [padded])


FORMS = {
    "AveragePool": _pads, "Conv": _pads, "ConvTranspose": _output_shape,
    "GlobalLpPool": _power_of_size, "LpPool": _power_pool, "MaxPool": _max_pool,
}  # fmt: skip
