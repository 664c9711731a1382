"""Ensembles of decision trees: each row goes down every tree, and what its leaves weigh is summed.

One plain loop nest, as what is read next depends on what was read: no schedule changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph import OpCall
from ..tvm import dtype_of, te, tir
from ..tvm.rewrite import sequence
from ..tvm.types import Buffer
from .attrs import Raw, like
from .kind import OWN, Array, OpKind, Typed, form
from .recurrent_nest import for_loop

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr, Tensor

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
# Trees that take a step together: each waits for four reads that follow on one another. 565 trees
# of 9 steps: one by one 9 us for a row seen before, whose branches the CPU predicts, and 26 for
# another; 4 at once 11 and 17, 8 at once 9 and 15, 32 at once 12 and 14 (Zen 4).
_AT_ONCE = 8
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

    def nest(given: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        walk = _Walk(call, given, outs)

        def loop(kind: Stmt) -> Stmt:
            row = tir.Var("row", dtype_of(rows))
            return tir.For(row, tir.const(0, dtype_of(rows)), rows, kind, walk.of_row(row))

        return tir.IfThenElse(rows < _MANY, loop(tir.ForKind.SERIAL), loop(tir.ForKind.PARALLEL))

    found = te.extern(
        [(rows, call.attrs["targets"]), (rows, _AT_ONCE), (rows,)], list(ins), nest, name=call.name,
        dtype=[call.outputs[0].dtype, "int32", "int32"],
    )  # fmt: skip
    return found[0]


class _Walk:
    """Of each row: `place` [row, i] is the node that the i-th tree of some has come to, or ~n for
    the n-th leaf, and `last` [row] the largest of them.
    """

    def __init__(self, call: OpCall, ins: Sequence[Buffer], outs: Sequence[Buffer]) -> None:
        self.attrs = call.attrs
        self.x, self.split, self.feature, self.ways, self.roots, self.target, self.weight = ins
        self.result, self.place, self.last = outs
        self.trees = self.roots.shape[0]
        self.count = tir.const(_AT_ONCE, dtype_of(self.trees))

    def of_row(self, row: PrimExpr) -> Stmt:
        """The sums of one row's leaves, over all trees."""
        summed, dtype = self.attrs["summed"], self.weight.dtype
        first = tir.const(0.0, dtype)
        if summed in ("min", "max"):
            first = (tir.max_value if summed == "min" else tir.min_value)(dtype)

        def each_target(value: Callable[[PrimExpr], PrimExpr]) -> Stmt:
            return for_loop(
                self.result.shape[1], "n",
                lambda n: tir.BufferStore(self.result, value(n), [row, n]),
            )  # fmt: skip

        groups = tir.floordiv(self.trees + self.count - 1, self.count)
        steps = [
            each_target(lambda n: first),
            for_loop(groups, "g", lambda g: self._group(row, g * self.count)),
        ]
        if summed == "mean":
            count = tir.Cast(dtype, self.trees)
            steps.append(each_target(lambda n: tir.BufferLoad(self.result, [row, n]) / count))
        return sequence(steps)

    def _group(self, row: PrimExpr, first: PrimExpr) -> Stmt:
        """Some trees, from their roots to their leaves; what is no tree is at a leaf all along."""
        none, zero = tir.const(-1, "int32"), tir.const(0, "int32")
        last = tir.BufferLoad(self.last, [row])

        def start(i: PrimExpr) -> Stmt:
            root = tir.BufferLoad(self.roots, [tir.Min(first + i, self.trees - 1)])
            place = tir.Select(first + i < self.trees, root, none)
            return tir.BufferStore(self.place, place, [row, i])

        def step(i: PrimExpr) -> Stmt:
            place = tir.BufferLoad(self.place, [row, i])
            after = tir.Select(place >= zero, self._next(row, tir.Max(place, zero)), place)
            moved = tir.BufferStore(self.place, after, [row, i])
            return sequence([moved, tir.BufferStore(self.last, tir.Max(last, place), [row])])

        steps = [tir.BufferStore(self.last, none, [row]), for_loop(self.count, "i", step)]
        return sequence([
            for_loop(self.count, "i", start),
            tir.BufferStore(self.last, zero, [row]),
            tir.While(last >= zero, sequence(steps)),
            for_loop(self.count, "i", lambda i: self._leaf(row, i, first + i)),
        ])  # fmt: skip

    def _leaf(self, row: PrimExpr, i: PrimExpr, tree: PrimExpr) -> Stmt:
        leaf = tir.const(-1, "int32") - tir.BufferLoad(self.place, [row, i])
        at = [row, tir.BufferLoad(self.target, [leaf])]
        both = tir.BufferLoad(self.result, at), tir.BufferLoad(self.weight, [leaf])
        joined = {"min": tir.min, "max": tir.max}.get(self.attrs["summed"], lambda a, b: a + b)
        added = tir.BufferStore(self.result, joined(*both), at)
        return tir.IfThenElse(tree < self.trees, added, None)

    def _next(self, row: PrimExpr, place: PrimExpr) -> PrimExpr:
        """No branch on x: of a row that was not seen before, half of them are guessed wrongly."""
        value = tir.BufferLoad(self.x, [row, tir.BufferLoad(self.feature, [place])])
        holds = COMPARED[self.attrs["compared"]][0](value, tir.BufferLoad(self.split, [place]))
        way = tir.Cast("int32", holds) + 2 * tir.Cast("int32", tir.isnan(value))
        return tir.BufferLoad(self.ways, [place, way])


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
