"""Trees of decisions (`TreeEnsemble` of ai.onnx.ml, as LightGBM's are exported) as Gathers: all go
down one level at a time, as many levels as the deepest has. TVM has no such op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...extra import extra
from .checks import IS_RELAY
from .graph import attributes, nodes

_DOMAIN = "ai.onnx.ml"
# By nodes_modes; what looks for members of a set is left to the frontend to refuse.
_COMPARED = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal")
_SUMMED = {0: "ReduceMean", 1: "ReduceSum", 2: "ReduceMin", 3: "ReduceMax"}
_OPSET = 13  # of all that is written here


def without_trees(model: Any) -> Any:
    """The model with its ensembles written as other ops; itself where there are none.

    On Relax: 0.17 fuses all levels into one function, which computes each place anew for each of
    its uses, 6 at the power of levels.
    """
    if IS_RELAY:
        return model
    opset = max((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), default=1)
    if opset < _OPSET or not any(node.domain == _DOMAIN for node in nodes(model.graph)):
        return model
    done = type(model)()
    done.CopyFrom(model)
    kept: list[Any] = []
    for node in done.graph.node:
        is_one = node.domain == _DOMAIN and node.op_type == "TreeEnsemble"
        trees = _trees(attributes(node)) if is_one else None
        kept += [node] if trees is None else _Written(done.graph, node, trees).nodes
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del done.graph.node[:]
    done.graph.node.extend(copies)
    return done


@dataclass(frozen=True)
class _Trees:
    """Nodes, and after them the leaves, which lead to themselves."""

    feature: np.ndarray
    split: np.ndarray
    missing: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    weight: np.ndarray
    target: np.ndarray
    roots: np.ndarray
    depth: int
    compared: str
    summed: str
    targets: int


def _trees(given: dict[str, Any]) -> _Trees | None:
    """The trees of a node; None for what is not written here."""
    array = extra("onnx").numpy_helper.to_array
    modes = np.unique(array(given["nodes_modes"]))
    summed = _SUMMED[given.get("aggregate_function", 1)]
    if len(modes) != 1 or modes[0] >= len(_COMPARED) or given.get("post_transform", 0):
        return None
    splits, weights = array(given["nodes_splits"]), array(given["leaf_weights"])
    targets = given["n_targets"]
    if targets > 1 and summed != "ReduceSum":
        return None  # of the others, a tree without a leaf of a target would count as 0
    count = len(splits)
    leaves = np.arange(count, count + len(weights))
    ways = [
        np.where(np.asarray(given[f"nodes_{way}leafs"]), count, 0) + given[f"nodes_{way}nodeids"]
        for way in ("true", "false")
    ]
    yes, no = (np.concatenate([way, leaves]).astype(np.int64) for way in ways)
    none = np.zeros(len(weights), np.int64)
    missing = given.get("nodes_missing_value_tracks_true") or [0] * count
    roots = np.asarray(given["tree_roots"], np.int64)
    return _Trees(
        np.concatenate([given["nodes_featureids"], none]).astype(np.int64),
        np.concatenate([splits, none.astype(splits.dtype)]),
        np.concatenate([missing, none]).astype(bool), yes, no,
        np.concatenate([np.zeros(count, weights.dtype), weights]),
        np.concatenate([np.zeros(count, np.int64), given["leaf_targetids"]]).astype(np.int64),
        roots, _depth(roots, yes, no), _COMPARED[modes[0]], summed, targets,
    )  # fmt: skip


def _depth(roots: np.ndarray, yes: np.ndarray, no: np.ndarray) -> int:
    """How many steps it is to the farthest leaf."""
    reached, depth = np.unique(roots), 0
    while (next_ones := np.unique([yes[reached], no[reached]])).tolist() != reached.tolist():
        reached, depth = next_ones, depth + 1
        if depth > len(yes):
            break  # a circle, which no tree has
    return depth


class _Written:
    """The nodes that stand for one ensemble; all have names that begin with its result's."""

    def __init__(self, graph: Any, node: Any, trees: _Trees) -> None:
        self.graph, self.prefix, self.nodes = graph, node.output[0], list[Any]()
        self._count, (x,) = 0, node.input
        place = self._started(x, trees)
        for _ in range(trees.depth):
            place = self._down(x, place)
        self._summed(place, trees, node.output[0])

    def _add(self, op: str, inputs: Sequence[str], out: str = "", **attrs: Any) -> str:
        self._count += 1
        name = out or f"{self.prefix}.{op}.{self._count}"
        self.nodes.append(extra("onnx").helper.make_node(op, list(inputs), [name], **attrs))
        return name

    def _constant(self, name: str, array: np.ndarray) -> str:
        name = f"{self.prefix}.{name}"
        self.graph.initializer.append(extra("onnx").numpy_helper.from_array(array, name))
        return name

    def _started(self, x: str, trees: _Trees) -> str:
        """The roots, for each row; and the tables."""
        names = ("feature", "split", "missing", "yes", "no", "weight", "target")
        self.tables = {name: self._constant(name, getattr(trees, name)) for name in names}
        self.compared, self.has_missing = trees.compared, bool(trees.missing.any())
        rows = self._add("Shape", [x])
        count = self._add("Gather", [rows, self._constant("first", np.array([0]))])
        many = self._constant("many", np.array([len(trees.roots)]))
        size = self._add("Concat", [count, many], axis=0)
        return self._add("Expand", [self._constant("roots", trees.roots[None]), size])

    def _of(self, table: str, place: str) -> str:
        return self._add("Gather", [self.tables[table], place])

    def _down(self, x: str, place: str) -> str:
        """One level."""
        value = self._add("GatherElements", [x, self._of("feature", place)], axis=1)
        holds = self._add(self.compared, [value, self._of("split", place)])
        if self.has_missing:
            missing = self._add("And", [self._add("IsNaN", [value]), self._of("missing", place)])
            holds = self._add("Or", [holds, missing])
        return self._add("Where", [holds, self._of("yes", place), self._of("no", place)])

    def _summed(self, place: str, trees: _Trees, out: str) -> None:
        """Of all trees, for each target."""
        weight, axis = self._of("weight", place), self._constant("axis", np.array([-1]))
        if trees.targets > 1:
            last = self._constant("last", np.array([1]))
            which = self._constant("targets", np.arange(trees.targets)[:, None])
            mine = self._add(
                "Equal", [self._add("Unsqueeze", [self._of("target", place), last]), which]
            )
            none = self._constant("none", np.zeros((), trees.weight.dtype))
            weight = self._add("Where", [mine, self._add("Unsqueeze", [weight, last]), none])
        more = {"keepdims": int(trees.targets == 1)}
        if trees.summed == "ReduceSum":
            self._add("ReduceSum", [weight, axis], out, **more)
        else:
            self._add(trees.summed, [weight], out, axes=[-1], **more)
