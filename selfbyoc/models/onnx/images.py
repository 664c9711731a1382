"""Windows and sizes of images in ONNX files, written so that TVM's frontends read them right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...extra import extra
from .checks import IS_RELAY, scales_of, why_not
from .graph import Graph, attributes


def output_shape(node: Any, graph: Graph) -> Sequence[Any]:
    """ConvTranspose to a shape: the pads that lead there, by ONNX's formula."""
    given = attributes(node)
    image, weight = graph.shape(node.input[0]), graph.shape(node.input[1])
    if "output_shape" not in given or image is None or weight is None:
        return ()
    ones = [1] * (len(image) - 2)
    strides, dilations = given.get("strides", ones), given.get("dilations", ones)
    more = given.get("output_padding", [0] * len(ones))
    wanted = given["output_shape"][-len(ones) :]
    total = [
        s * (e - 1) + m + (k - 1) * d + 1 - w
        for s, e, m, k, d, w in zip(
            strides, image[2:], more, weight[2:], dilations, wanted, strict=True
        )
    ]
    more = [m + max(-t, 0) for m, t in zip(more, total, strict=True)]
    room = [max(t, 0) for t in total]
    first = [t // 2 if given.get("auto_pad") == b"SAME_UPPER" else (t + 1) // 2 for t in room]
    pads = [*first, *(t - f for t, f in zip(room, first, strict=True))]
    given |= {"pads": pads, "output_padding": more}
    del node.attribute[:]
    for key in given.keys() - {"output_shape", "auto_pad"}:
        node.attribute.append(extra("onnx").helper.make_attribute(key, given[key]))
    return ()


def as_pads(node: Any, graph: Graph) -> Sequence[Any]:
    """A pool's auto_pad as pads: 0.27's frontend has fewer windows under SAME_LOWER."""
    given, image = attributes(node), graph.image(node.input[0])
    if given.get("auto_pad") not in (b"SAME_LOWER", b"SAME_UPPER") or image is None:
        return ()
    ones = [1] * len(image)
    steps, apart = given.get("strides", ones), given.get("dilations", ones)
    room = [
        max((-(-e // s) - 1) * s + (k - 1) * d + 1 - e, 0)
        for e, s, k, d in zip(image, steps, given["kernel_shape"], apart, strict=True)
    ]
    first = [t // 2 if given["auto_pad"] == b"SAME_UPPER" else (t + 1) // 2 for t in room]
    given["pads"] = [*first, *(t - f for t, f in zip(room, first, strict=True))]
    del node.attribute[:]
    for key in given.keys() - {"auto_pad", "ceil_mode"}:
        node.attribute.append(extra("onnx").helper.make_attribute(key, given[key]))
    return ()


def power_pool(node: Any, graph: Graph) -> Sequence[Any]:
    as_pads(node, graph)
    return power_of_size(node, graph)


def power_of_size(node: Any, graph: Graph) -> Sequence[Any]:
    """0.17's frontend takes powers of the numbers, where ONNX takes those of their sizes."""
    if not IS_RELAY:
        return ()
    size = f"{node.output[0]}.size"
    before = extra("onnx").helper.make_node("Abs", [node.input[0]], [size])
    node.input[0] = size
    return (before,)


def resized(node: Any, graph: Graph) -> Sequence[Any]:
    """0.27's frontend reads all opsets as the last one: there, what is given is a size or scales,
    and pixels are counted from their middle. What is empty is not given.
    """
    if IS_RELAY:
        return ()
    if node.op_type == "Resize" and graph.opset > 10:
        for n, name in enumerate(node.input):
            if name and graph.shape(name) == (0,):
                node.input[n] = ""
        return ()
    scales, shape, given = scales_of(node, graph), graph.shape(node.input[0]), attributes(node)
    if scales is None or shape is None or why_not(node, graph):
        return ()
    sizes = np.round(np.asarray(shape) * scales.astype(float)).astype(np.int64)
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    inputs = [node.input[0], "", "", graph.add(sizes)]
    made = extra("onnx").helper.make_node("Resize", inputs, list(node.output), **how)
    made.attribute.append(extra("onnx").helper.make_attribute("mode", given.get("mode", "nearest")))
    node.CopyFrom(made)
    return ()
