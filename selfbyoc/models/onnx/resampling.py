"""Forms of Resize and Upsample: those of today where TVM's frontends read them right, as rows where
not (resampling_rows.py). They know images, sizes that are constants, and steps of their ratios.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .checks import IS_RELAY, why_not
from .graph import Graph, attributes, remade
from .resampling_rows import as_rows

if TYPE_CHECKING:
    import onnx

_MIDDLES = (b"half_pixel", b"pytorch_half_pixel")


def _resized(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """As the last opset has it, where 0.27's frontend reads that right; else as rows."""
    if IS_RELAY and not why_not(node, graph) and _is_known_to_relay(node, graph):
        return None
    given = _latest(node, graph)
    if IS_RELAY:
        return as_rows(given or node, graph)
    node = given or node
    if _is_read(node, graph) or _is_copied(node, graph):
        return None if given is None else [node]
    return as_rows(node, graph)


def _is_known_to_relay(node: onnx.NodeProto, graph: Graph) -> bool:
    mode = attributes(node).get("coordinate_transformation_mode", b"")
    return mode != b"half_pixel_symmetric" and (graph.rank(node.input[0]) or 4) in (3, 4, 5)


def _latest(node: onnx.NodeProto, graph: Graph) -> onnx.NodeProto | None:
    """A Resize of opset 11 for an older one, or for an Upsample: pixels are counted from their
    corners there. What is empty is not given. None: it is one.
    """
    if node.op_type == "Resize" and len(node.input) > 2:  # of opset 11, which may stand in an older
        inputs = ["" if name and graph.shape(name) == (0,) else name for name in node.input]
        return remade(node, inputs=inputs) if inputs != list(node.input) else None
    given = attributes(node)
    scales = given.get("scales")
    name = node.input[1] if scales is None else graph.add(np.asarray(scales, np.float32))
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return remade(
        node, "Resize", [node.input[0], "", name], how | {"mode": given.get("mode", "nearest")}
    )


def _is_read(node: onnx.NodeProto, graph: Graph) -> bool:
    """Whether TVM's frontend resizes images of this rank so, to sizes that are known."""
    shape, given = graph.shape(node.input[0]), attributes(node)
    names = [name for name in node.input[2:] if name]
    rank, wanted = graph.rank(node.input[0]), graph.constant(names[0]) if names else None
    is_image = rank is not None and 3 <= rank <= 5 and "axes" not in given
    if not is_image or wanted is None or wanted.size != rank or why_not(node, graph):
        return False
    dims = graph.dims(node.input[0]) or []
    is_scaled = len(node.input) > 2 and node.input[2]
    if any(w != (1 if is_scaled else d) for w, d in zip(wanted[:2], dims, strict=False)):
        return False
    mode = given.get("coordinate_transformation_mode", b"half_pixel")
    return shape is not None and mode != b"half_pixel_symmetric"


# Where a pixel is read by a whole scale, so that each is there as often.
_COPIES = {
    (b"asymmetric", b"floor"), *((mode, b"round_prefer_floor") for mode in _MIDDLES),
    *((mode, b"round_prefer_ceil") for mode in _MIDDLES),
}  # fmt: skip


def is_copying(given: Mapping[str, bytes], scales: np.ndarray) -> bool:
    """Whether a Resize by these scales, all whole, has each pixel that many times."""
    where = given.get("coordinate_transformation_mode", b"half_pixel")
    how = (where, given.get("nearest_mode", b"round_prefer_floor"))
    is_plain = given.get("mode", b"nearest") == b"nearest" and "axes" not in given
    is_whole = bool(np.all((scales >= 1) & (scales % 1 == 0)))
    return is_plain and is_whole and how in _COPIES


def _is_copied(node: onnx.NodeProto, graph: Graph) -> bool:
    """Whether that is so of an image of open sizes; relax/copied.py reads it."""
    names = [name for name in node.input[2:] if name]
    scales = graph.constant(names[0]) if names == list(node.input[2:3]) else None
    if scales is None or graph.shape(node.input[0]) is not None:
        return False
    is_of_all = scales.size == graph.rank(node.input[0])
    return is_of_all and is_copying(attributes(node), scales)


FORMS = {"Resize": _resized, "Upsample": _resized}
