"""Ensembles of decision trees: each row goes down every tree, and what its leaves weigh is summed.

One plain loop nest, as what is read next depends on what was read: no schedule changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tvm import dtype_of, te, tir
from .._tvm_rewrite import sequence
from ..graph import OpCall
from .attrs import Raw, like
from .kind import OWN, Array, OpKind, Typed, form
from .recurrent_nest import for_loop

if TYPE_CHECKING:
    from ..language.types import Expr, Tensor

Stmt = Any
# Of a value and what it is compared with: (in TIR, in NumPy). All are false for NaN.
COMPARED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Array, Array], Array]]] = {
    "less_equal": (lambda x, split: x <= split, np.less_equal),
    "less": (lambda x, split: x < split, np.less),
    "greater_equal": (lambda x, split: x >= split, np.greater_equal),
    "greater": (lambda x, split: x > split, np.greater),
    "equal": (tir.EQ, np.equal),
}
SUMMED = ("sum", "mean", "min", "max")
WAYS = 3  # from a node: where the comparison is false, where it holds, and where x is NaN
_MANY = 8  # rows that are worth a parallel loop


def _types(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    (x, dtype), (splits, split), *others, (_, weight) = ins
    places = [kind for _, kind in others]
    if len(x) != 2 or dtype not in ("float32", "float64") or split != dtype or weight != dtype:
        text = "expected x [rows, features], splits and weights of float32, or of float64"
        raise ValueError(f"{text}; found {len(x)} axes of {dtype}, {split}, {weight}")
    if any(kind != "int32" for kind in places):
        raise ValueError(f"expected features, ways, roots and targets of int32, found {places}")
    shapes = [tuple(shape) for shape, _ in others]
    if shapes[:2] != [tuple(splits), (*splits, WAYS)]:
        text = f"expected a feature and {WAYS} ways for each of {list(splits)} splits"
        raise ValueError(f"{text}, found {[list(shape) for shape in shapes[:2]]}")
    if attrs["compared"] not in COMPARED or attrs["summed"] not in SUMMED:
        raise ValueError(f"expected one of {', '.join(COMPARED)}, and of {', '.join(SUMMED)}")
    return [((x[0], attrs["targets"]), dtype)]


def _numpy(ins: Sequence[Array], call: OpCall) -> Array:
    x, split, feature, ways, roots, target, weight = ins
    rows, place = np.arange(len(x))[:, None], np.tile(roots, (len(x), 1))
    holds = COMPARED[call.attrs["compared"]][1]
    while (inside := place >= 0).any():
        node = np.where(inside, place, 0)
        value = x[rows, feature[node]]
        way = np.where(np.isnan(value), 2, holds(value, split[node]))
        place = np.where(inside, ways[node, way], place)
    leaf, targets = ~place, range(call.attrs["targets"])
    if call.attrs["summed"] in ("min", "max"):
        least: Array = getattr(weight[leaf], call.attrs["summed"])(axis=1, keepdims=True)
        return least
    sums = [np.where(target[leaf] == n, weight[leaf], 0).sum(axis=1) for n in targets]
    made: Array = np.stack(sums, axis=1)
    return made / len(roots) if call.attrs["summed"] == "mean" else made


def _plain(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    rows = ins[0].shape[0]

    def nest(given: Sequence[Any], outs: Sequence[Any]) -> Stmt:
        walk = _Walk(call, given, outs)

        def loop(kind: Any) -> Stmt:
            row = tir.Var("row", dtype_of(rows))
            return tir.For(row, tir.const(0, dtype_of(rows)), rows, kind, walk.of_row(row))

        return tir.IfThenElse(rows < _MANY, loop(tir.ForKind.SERIAL), loop(tir.ForKind.PARALLEL))

    found = te.extern(
        [(rows, call.attrs["targets"]), (rows,)], list(ins), nest, name=call.name,
        dtype=[call.outputs[0].dtype, "int32"],
    )  # fmt: skip
    return found[0]


class _Walk:
    """Of each row: `place` [row] is the node that it has come to, or ~n for the n-th leaf."""

    def __init__(self, call: OpCall, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        self.attrs = call.attrs
        self.x, self.split, self.feature, self.ways, self.roots, self.target, self.weight = ins
        self.result, self.place = outs

    def of_row(self, row: Expr) -> Stmt:
        """The sums of one row's leaves, over all trees."""
        summed, dtype, trees = self.attrs["summed"], self.weight.dtype, self.roots.shape[0]
        first = tir.const(0.0, dtype)
        if summed in ("min", "max"):
            first = (tir.max_value if summed == "min" else tir.min_value)(dtype)

        def each_target(value: Callable[[Expr], Expr]) -> Stmt:
            return for_loop(
                self.result.shape[1], "n",
                lambda n: tir.BufferStore(self.result, value(n), [row, n]),
            )  # fmt: skip

        steps = [each_target(lambda n: first), for_loop(trees, "t", lambda t: self._tree(row, t))]
        if summed == "mean":
            count = tir.Cast(dtype, trees)
            steps.append(each_target(lambda n: tir.BufferLoad(self.result, [row, n]) / count))
        return sequence(steps)

    def _tree(self, row: Expr, tree: Expr) -> Stmt:
        place, zero = tir.BufferLoad(self.place, [row]), tir.const(0, "int32")
        value = tir.BufferLoad(self.x, [row, tir.BufferLoad(self.feature, [place])])
        holds = COMPARED[self.attrs["compared"]][0](value, tir.BufferLoad(self.split, [place]))
        way = tir.Select(tir.isnan(value), tir.const(2, "int32"), tir.Cast("int32", holds))
        down = tir.BufferStore(self.place, tir.BufferLoad(self.ways, [place, way]), [row])
        leaf = tir.const(-1, "int32") - place
        at = [row, tir.BufferLoad(self.target, [leaf])]
        both = tir.BufferLoad(self.result, at), tir.BufferLoad(self.weight, [leaf])
        joined = {"min": tir.min, "max": tir.max}.get(self.attrs["summed"], lambda a, b: a + b)
        return sequence([
            tir.BufferStore(self.place, tir.BufferLoad(self.roots, [tree]), [row]),
            tir.While(place >= zero, down),
            tir.BufferStore(self.result, joined(*both), at),
        ])  # fmt: skip


_ATTRS = {"compared": "less_equal", "summed": "sum", "targets": 1}
KINDS = (
    OpKind(
        "tree_ensemble", _plain, _numpy, inputs=7, attrs=_ATTRS, types=_types,
        relay=form(OWN + "tree_ensemble", like(_ATTRS)),
        relax=form(OWN + "tree_ensemble", like(_ATTRS)),
        takes="x splits features ways roots leaf_targets leaf_weights",
        doc="The sum over decision trees, [rows, targets], of x [rows, features]. Node n compares "
        "x[row, features[n]] with splits[n] (less_equal, less, greater_equal, greater, equal), and "
        "ways[n] has the next nodes where that is false, where it holds, and where x is NaN: ~m "
        "is leaf m. roots has each tree's first node; a leaf gives its weight to its target. "
        "summed is sum or mean, and with one target min or max.",
    ),
)  # fmt: skip
