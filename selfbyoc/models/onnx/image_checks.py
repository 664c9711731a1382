"""What TVM's ONNX frontends would read as something else, of ops of images: refused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...tvm import GENERATION
from .graph import Graph, attributes

if TYPE_CHECKING:
    import onnx

_IS_RELAY = GENERATION == "relay"
_POOLS = ("AveragePool", "MaxPool", "LpPool")


def _scales(node: onnx.NodeProto, graph: Graph) -> str:
    """TVM's steps are those of the sizes: a scale that does not divide them is another one."""
    scales = scales_of(node, graph)
    if scales is None or not scales.size:
        return ""
    shape, axes = graph.shape(node.input[0]), attributes(node).get("axes")
    if shape is None:
        return ""
    sizes = np.asarray(shape, float)[list(axes) if axes else slice(None)]
    exact = sizes * scales.astype(float)
    if (np.abs(exact - np.round(exact)) < 1e-4 * sizes).all():
        return ""
    return f"scales {scales.tolist()} give no whole sizes of {list(shape)}"


def scales_of(node: onnx.NodeProto, graph: Graph) -> np.ndarray | None:
    """What a Resize or an Upsample of whatever opset scales by; None where that is not known."""
    if node.op_type not in ("Resize", "Upsample"):
        return None
    if "scales" in (given := attributes(node)):
        return np.asarray(given["scales"], np.float32)
    place = 2 if len(node.input) > 2 else 1  # before opset 11 there is no region of interest
    return graph.constant(node.input[place]) if len(node.input) > place else None


def _window(node: onnx.NodeProto, graph: Graph) -> str:
    """0.17 counts a last window that begins in the padding; ONNX does not."""
    given = attributes(node) if _IS_RELAY and node.op_type in _POOLS else {}
    shape = graph.shape(node.input[0]) if given.get("ceil_mode") else None
    if shape is None:
        return ""
    sizes, ones = given["kernel_shape"], [1] * (len(shape) - 2)
    pads, steps = given.get("pads", [0] * 2 * len(ones)), given.get("strides", ones)
    dilations = given.get("dilations", ones)
    for n, extent in enumerate(shape[2:]):
        room = extent + pads[n] + pads[n + len(ones)] - dilations[n] * (sizes[n] - 1) - 1
        if math.ceil(room / steps[n]) * steps[n] >= extent + pads[n]:
            return f"of axis {n + 2} the last window lies in the padding"
    return ""


def _large(node: onnx.NodeProto, graph: Graph) -> str:
    """Of sizes of an image 0.17 takes the lower 32 bits."""
    if not _IS_RELAY or node.op_type not in ("Resize", "Upsample"):
        return ""
    values = [graph.constant(name) for name in node.input[1:] if name]
    found = [e for v in values if v is not None for e in v.ravel().tolist() if abs(e) >= 2**31]
    return f"it resizes to {found[0]}, which is beyond 32 bits" if found else ""


def _nearest(node: onnx.NodeProto, graph: Graph) -> str:
    """0.17 rounds halves down where pixels are counted from their corners."""
    mode = attributes(node).get("nearest_mode", b"") if node.op_type == "Resize" else b""
    is_up = _IS_RELAY and mode == b"round_prefer_ceil"
    return "nearest_mode is round_prefer_ceil" if is_up else ""


def _aligned(node: onnx.NodeProto, graph: Graph) -> str:
    """0.17 has no regions half a pixel further; 0.27 moves them before it scales them, where
    windows.py could not scale them first.
    """
    corners = corners_of(node, graph) if node.op_type == "RoiAlign" else ""
    if _IS_RELAY and corners not in ("", "output_half_pixel"):
        return f"coordinate_transformation_mode is {corners}, and is taken for output_half_pixel"
    scale = attributes(node).get("spatial_scale", 1.0)
    is_right = corners != "half_pixel" or scale == 1
    return "" if is_right else f"half_pixel is taken off before spatial_scale {scale}, not after"


def corners_of(node: onnx.NodeProto, graph: Graph) -> str:
    """Where the corners of a RoiAlign's regions lie: half a pixel further since opset 16, unless it
    says otherwise.
    """
    usual = b"half_pixel" if graph.opset >= 16 else b"output_half_pixel"
    found: bytes = attributes(node).get("coordinate_transformation_mode", usual)
    return found.decode()


CHECKS = (_scales, _window, _large, _nearest, _aligned)
