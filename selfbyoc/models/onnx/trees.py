"""`TreeEnsemble` of ai.onnx.ml, as LightGBM's are exported, as an op of the vocabulary: neither of
TVM's frontends has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...common.optional import extra
from ...errors import InputError
from ...ops.trees import COMPARED, SUMMED
from .build import Folding
from .claims import check_room
from .graph import Graph, NodeAttrs, attributes

if TYPE_CHECKING:
    import onnx

OP = "ai.onnx.ml.TreeEnsemble"
# By nodes_modes; what looks for members of a set comes after them.
_COMPARED = ("less_equal", "less", "greater_equal", "greater", "equal", "equal")
_NOT_EQUAL = 5
assert set(_COMPARED) == set(COMPARED)
_SUMMED = ("mean", "sum", "min", "max")
assert set(_SUMMED) == set(SUMMED)


def _form(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    """Raises InputError for what the op does not do."""
    given, nodes = attributes(node), Folding(graph, node)
    array = extra("onnx").numpy_helper.to_array
    modes = np.unique(array(given["nodes_modes"])).tolist()
    summed, targets = _SUMMED[given.get("aggregate_function", 1)], given["n_targets"]
    _check(node, given, modes, summed)
    check_room(node, targets)
    splits, weights = array(given["nodes_splits"]), array(given["leaf_weights"])
    ways = _ways(given, modes == [_NOT_EQUAL])
    features = (graph.dims(node.input[0]) or [None])[-1]
    if fault := _fault(given, ways, len(splits), len(weights), features):
        raise InputError(f"{node.op_type} {node.name!r}: {fault}")
    places = [given["nodes_featureids"], ways, given["tree_roots"], given["leaf_targetids"]]
    tables = [splits, *(np.asarray(each, np.int32) for each in places), weights]
    inputs = [node.input[0], *map(nodes.constant, tables)]
    attrs = {"compared": _COMPARED[modes[0]], "summed": summed, "targets": targets}
    return nodes.instead(*nodes.own("tree_ensemble", 1, *inputs, **attrs))


def _check(node: onnx.NodeProto, given: NodeAttrs, modes: list[int], summed: str) -> None:
    found = ""
    if len(modes) != 1 or modes[0] >= len(_COMPARED):
        found = f"expected one mode for all nodes, of 0 to {len(_COMPARED) - 1}, found {modes}"
    elif given.get("post_transform", 0):
        found = f"expected no post_transform, found {given['post_transform']}"
    elif given["n_targets"] > 1 and summed in ("min", "max"):
        # A tree without a leaf of a target would count as 0.
        found = f"expected a sum or a mean for {given['n_targets']} targets, found {summed}"
    if found:
        raise InputError(f"{node.op_type} {node.name!r}: {found}")


def _ways(given: NodeAttrs, is_turned: bool) -> np.ndarray:
    """[nodes, 3]: where each leads if its comparison is false, if it holds, and for NaN; leaves
    count backwards from -1. `is_turned`: it holds where the node's own is false.
    """
    no, yes = (
        np.where(np.asarray(given[f"nodes_{way}leafs"]) != 0, np.invert(places), places)
        for way in ("false", "true")
        for places in [np.asarray(given[f"nodes_{way}nodeids"])]
    )
    if is_turned:
        return np.stack([yes, no, yes], axis=1)  # NaN is unequal to everything
    missing = np.asarray(given.get("nodes_missing_value_tracks_true") or [0] * len(no))
    return np.stack([no, yes, np.where(missing != 0, yes, no)], axis=1)


def _fault(
    given: NodeAttrs, ways: np.ndarray, nodes: int, leaves: int, features: int | None
) -> str:
    """What would be read beyond a table, or go round for ever; "": nothing."""
    looked = {
        "nodes_featureids": features,
        "tree_roots": nodes,
        "leaf_targetids": given["n_targets"],
    }
    for name, end in looked.items():
        found = np.asarray(given[name])
        last = 2**31 - 1 if end is None else end - 1
        if len(found) and not 0 <= found.min() <= found.max() <= last:
            return f"{name}: expected 0 to {last}, found {found.min()} to {found.max()}"
    if len(ways) != nodes or not -leaves <= ways.min() <= ways.max() < nodes:
        return f"expected ways to {nodes} nodes and {leaves} leaves, found others"
    reached = np.unique(given["tree_roots"])
    for _ in range(nodes):
        inside = ways[reached]
        reached = np.unique(inside[inside >= 0])
    return "a node leads back to itself" if len(reached) else ""


FORMS = {OP: _form}
