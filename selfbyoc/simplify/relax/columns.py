"""Relax: columns of a product that are only read apart become products of their own.

Models compute queries, keys and values by one dense layer and take them out of its result by a
transpose and slices: two copies of all. As three products of parts of the weight nothing is copied,
and attention reads them where they lie.

    slice(permute_dims(reshape(x @ w + b)))  ->  permute_dims(reshape(x @ w[:, i:j] + b[i:j]))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from tvm import relax

from ...ir.relax import Constant
from ...ir.relax.emit import constant
from ...ir.rewriting import are_same
from ...tvm import constant_numpy, tvm
from ...tvm.types import Expr
from ..cut import Cut
from .cuts import cut_of, item_of
from .exprs import is_op, leaves, open_shape

LEAST_ROWS = 16  # of the product: of fewer a slice is a short copy
LEAST_COLUMNS = 16  # of a part: a block of packed weights, on every CPU

Make = Callable[["_Apart"], Any]  # -> the expression of a part


def columns_apart(mod: tvm.IRModule) -> tvm.IRModule:
    """The normalised module, with such products in parts."""
    found = _Cuts(mod["main"]).parts()
    if not found:
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), _Apart(found).visit_expr(mod["main"]))
    return relax.transform.DeadCodeElimination()(relax.transform.Normalize()(done))


class _Cuts:
    """The slices of main whose sources can be computed in parts."""

    def __init__(self, main: relax.Function) -> None:
        blocks = main.body.blocks
        self.values = {b.var: b.value for block in blocks for b in block.bindings}
        self.block_of = {b.var: n for n, block in enumerate(blocks) for b in block.bindings}
        self.readers: dict[Any, list[Any]] = {}
        for reader, value in (*self.values.items(), (None, main.body.body)):
            for leaf in leaves(value):
                if isinstance(leaf, relax.Var):
                    self.readers.setdefault(leaf, []).append(reader)

    def parts(self) -> dict[Expr, Make]:
        """How to compute each slice, by its variable."""
        found: dict[Any, Make] = {}
        for source in self.values:
            cuts = self._cuts_of(source)
            made = {var: self._made(cut) for var, cut in cuts.items()}
            found.update({v: m for v, m in made.items() if m} if all(made.values()) else {})
        return found

    def _cuts_of(self, source: Expr) -> dict[Expr, Cut]:
        """The slices that read a value, where nothing else does, and no two the same elements."""
        readers = self.readers.get(source, [])
        if len(readers) == 1 and is_op(self.values.get(readers[0]), "split"):
            split = readers[0]
            cuts = {
                r: item_of(self.values.get(r), self.values[split])
                for r in self.readers.get(split, ())
            }
        else:
            cuts = {reader: cut_of(self.values.get(reader)) for reader in readers}
        known = dict(self._squeezed(var, cut) for var, cut in cuts.items() if cut is not None)
        axes = {cut.axis for cut in known.values()}
        ends = sorted((cut.begin, cut.end) for cut in known.values())
        apart = all(a[1] <= b[0] for a, b in pairwise(ends))
        is_whole = len(known) == len(cuts) > 1 and len(axes) == 1
        near = all(self.are_near(var, source) for var in known)
        return known if is_whole and apart and near else {}

    def _squeezed(self, var: Expr, cut: Cut) -> tuple[Expr, Cut]:
        """The slice together with the squeeze that alone reads it."""
        (reader, *others) = self.readers.get(var, [None])
        squeeze: Any = self.values.get(reader)
        if others or cut.drops or cut.end - cut.begin != 1 or not is_op(squeeze, "squeeze"):
            return var, cut
        axes = [int(axis) % len(open_shape(squeeze.args[0])) for axis in squeeze.attrs.axis or ()]
        return (reader, replace(cut, drops=True)) if axes == [cut.axis] else (var, cut)

    def _made(self, cut: Cut) -> Make | None:
        made = self._part(cut)
        if made is not None or not cut.drops:
            return made
        kept = self._part(replace(cut, drops=False))
        return kept and (lambda to: relax.op.squeeze(to.emit(kept(to)), [cut.axis]))

    def _part(self, cut: Cut) -> Make | None:
        """The elements, computed without the others."""
        value = self.values.get(cut.of)
        if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.Op):
            return None
        rule = _RULES.get(value.op.name)
        return rule(self, value, cut) if rule and open_shape(value) else None

    def inner(self, cut: Cut) -> Make | None:
        """The same of a value that nothing else reads."""
        (reader, *others) = self.readers.get(cut.of, [None])
        return self._part(cut) if not others and self.are_near(cut.of, reader) else None

    def are_near(self, var: Expr, other: Expr) -> bool:
        """Whether two values are of one block: a dataflow block's are known nowhere else."""
        return var in self.block_of and self.block_of[var] == self.block_of.get(other)


def _of_transpose(cuts: _Cuts, call: Expr, cut: Cut) -> Make | None:
    ndim = len(open_shape(call))
    given = call.attrs.axes
    axes = list(range(ndim))[::-1] if given is None else [int(a) % ndim for a in given]
    gone = axes[cut.axis]
    made = cuts.inner(cut.on(call.args[0], gone, drops=cut.drops))
    if cut.drops:
        axes = [axis - (axis > gone) for axis in axes if axis != gone]
    return made and (lambda to: relax.op.permute_dims(to.emit(made(to)), axes))


def _of_reshape(cuts: _Cuts, call: Expr, cut: Cut) -> Make | None:
    """The axis is the outermost part of one of the axes before."""
    before, after, axis = open_shape(call.args[0]), open_shape(call), cut.axis
    outside = math.prod(after[:axis])
    places = [n for n in range(len(before)) if are_same([math.prod(before[:n])], [outside])]
    if not places or not isinstance(before[places[-1]], int) or before[places[-1]] % after[axis]:
        return None
    per = before[places[-1]] // after[axis]
    ends = [math.prod(after[axis + 1 : n]) for n in range(axis + 1, len(after) + 1)]
    is_outermost = any(isinstance(end, int) and end == per for end in ends)
    made = cuts.inner(cut.on(call.args[0], places[-1], per)) if is_outermost else None
    size = [] if cut.drops else [cut.end - cut.begin]
    shape = [*after[:axis], *size, *after[axis + 1 :]]
    return made and (lambda to: relax.op.reshape(to.emit(made(to)), shape))


def _of_sum(cuts: _Cuts, call: Expr, cut: Cut) -> Make | None:
    """A sum with a constant, such as the bias."""
    data, bias = call.args if isinstance(call.args[1], Constant) else reversed(call.args)
    extents = open_shape(call)
    if cut.drops or not isinstance(bias, Constant) or not are_same(open_shape(data), extents):
        return None
    array = constant_numpy(bias)
    own = cut.axis - (len(extents) - array.ndim)
    if own >= 0 and array.shape[own] > 1:
        array = np.ascontiguousarray(np.take(array, range(cut.begin, cut.end), own))
    made = cuts.inner(cut.on(data, cut.axis))
    return made and (lambda to: relax.op.add(to.emit(made(to)), constant(array)))


def _of_product(cuts: _Cuts, call: Expr, cut: Cut) -> Make | None:
    *lead, _ = shape = open_shape(call)
    turned: Any = cuts.values.get(call.args[1])
    turns = is_op(turned, "permute_dims")
    weight = turned.args[0] if turns else call.args[1]
    of_columns = cut.axis == len(shape) - 1 and not cut.drops
    few_rows = all(isinstance(e, int) for e in lead) and math.prod(lead) < LEAST_ROWS
    few = few_rows or cut.end - cut.begin < LEAST_COLUMNS
    if few or not of_columns or not isinstance(weight, Constant) or len(open_shape(weight)) != 2:
        return None
    whole = constant_numpy(weight)
    part = whole[cut.begin : cut.end] if turns else whole[:, cut.begin : cut.end]
    part = np.ascontiguousarray(part)
    near = cuts.are_near(call.args[0], cut.of)
    merges: Any = cuts.values.get(call.args[0]) if near else None

    def made(to: _Apart) -> Expr:
        matrix = to.emit(relax.op.permute_dims(constant(part))) if turns else constant(part)
        data = to.visit_expr(call.args[0])
        if is_op(merges, "reshape"):  # one for each product, which become one op with it
            data = to.emit(relax.op.reshape(to.visit_expr(merges.args[0]), open_shape(merges)))
        return relax.op.matmul(data, matrix, out_dtype=call.attrs.out_dtype)

    return made


_RULES: dict[str, Callable[[_Cuts, Any, Cut], Make | None]] = {
    "relax.add": _of_sum,
    "relax.matmul": _of_product,
    "relax.permute_dims": _of_transpose,
    "relax.reshape": _of_reshape,
}


@relax.expr_functor.mutator
class _Apart(relax.PyExprMutator):
    """Parts in the place of slices."""

    def __init__(self, parts: dict[Expr, Make]) -> None:
        super().__init__()
        self.parts = parts

    def emit(self, expr: Expr) -> Expr:
        """A variable for an expression."""
        return self.builder_.emit(expr)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if binding.var not in self.parts:
            super().visit_var_binding_(binding)
            return
        made = self.builder_.normalize(self.parts[binding.var](self))
        var = self.visit_var_def(binding.var)
        self.builder_.emit_normalized(relax.VarBinding(var, made))
