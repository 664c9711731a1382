"""The stages of a recurrent layer, [length, directions, batch, units] in the order of the steps.

The state before a step is a stage that gives the first one, and is marked: the schedule says which
stage it is of, and after scheduling it reads that stage's last step (tir/recurrences.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....codegen.info.ops import Ops
from ....graph import OpCall
from ....ops.cells import Cell, cells
from ....tir.recurrences import CARRIED
from ....tvm import te, tir
from ....tvm.own_ops import LEAST_OF, dot
from ....tvm.types import Attr, PrimExpr, Tensor
from ...steps.tensors import extents, reduce_axes
from ...steps.tiles import BLOCK
from ..words import of_axis, word_of
from .plan import RecurrentPlan
from .rounding import Rounding, rounded

Element = Callable[
    [int, Sequence[PrimExpr]], PrimExpr
]  # of a gate, at [step, direction, row, unit]


@dataclass(frozen=True)
class Layer:
    """`before` are the states before a step, `after` those after it, in the same order; `products`
    [step, direction, row, block, gate, lane] are summed in registers, and the stages of a tile
    follow on each: `groups`, in the order of computing. `rounding` makes of a state what is
    multiplied.
    """

    before: tuple[Tensor, ...]
    products: tuple[Tensor, ...]
    after: tuple[Tensor, ...]
    groups: tuple[tuple[Tensor, ...], ...]
    result: tuple[Tensor, ...]
    rounding: Rounding | None = None


def compute(inputs: Sequence[Tensor], call: OpCall, plan: RecurrentPlan) -> Layer:
    """All stages of a layer."""
    gates, weight, hidden, *own = inputs
    made = _Stages(cells(call.kind, call.attrs), plan, gates, weight)
    if call.kind == "gru":
        return made.gru(hidden, *own)
    return made.lstm(hidden, *own) if own else made.rnn(hidden)


def compute_levels(
    gates: Tensor,
    weight: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    hidden: Tensor,
    cell: Tensor,
    *,
    ops: Ops,
    plan: RecurrentPlan,
) -> Layer:
    """All stages of an LSTM whose products are of levels; the weight's zero point is the middle of
    its dtype, and gone since it was packed.
    """
    made = cells("lstm", ops.lstm.attrs)
    return _Stages(made, plan, gates, weight, w_scale).lstm(hidden, cell)


class _Stages:
    def __init__(
        self,
        made: Sequence[Cell],
        plan: RecurrentPlan,
        gates: Tensor,
        weight: Tensor,
        w_scale: Tensor | None = None,
    ) -> None:
        self.cells, self.plan, self.gates, self.weight = made, plan, gates, weight
        self.w_scale = w_scale
        self.rounding: Rounding | None = None
        sides = len(plan.reversed)
        self.shape = (plan.length, sides, plan.padded_batch, plan.blocks * BLOCK)

    # ---- the layers

    def rnn(self, hidden: Tensor) -> Layer:
        before = self._before(hidden, "hidden_before")
        sums, product = self._sums(0, before)
        states = self._stage("states", lambda c, *i: c.gate(0, sums(0, i)))
        return self._layer((before,), (product,), (states,), ((states,),))

    def lstm(self, hidden: Tensor, cell: Tensor, peepholes: Tensor | None = None) -> Layer:
        before = self._before(hidden, "hidden_before"), self._before(cell, "cell_before")
        if self.cells[0].rounds:
            self.rounding = rounded(before[0], LEAST_OF.get(self.plan.levels))
        sums, product = self._sums(0, self.rounding.kept if self.rounding else before[0])
        units = self.plan.units

        def looks(i: Sequence[PrimExpr]) -> list[PrimExpr]:
            j = self._unit(i[-1])
            return [] if peepholes is None else [peepholes(i[1], n * units + j) for n in range(3)]

        def all_sums(i: Sequence[PrimExpr]) -> list[PrimExpr]:
            return [sums(g, i) for g in range(4)]

        held = self._stage(
            "cells", lambda c, *i: c.cell_state(all_sums(i), before[1](*i), looks(i))
        )
        states = self._stage(
            "states", lambda c, *i: c.hidden_state(all_sums(i), held(*i), looks(i))
        )
        made = self._layer(before, (product,), (states, held), ((held, states),))
        return replace(made, rounding=self.rounding)

    def gru(self, hidden: Tensor, bias: Tensor) -> Layer:
        before = self._before(hidden, "hidden_before")
        sums, product = self._sums(0, before)

        def added(i: Sequence[PrimExpr]) -> PrimExpr:
            return bias(i[1], self._unit(i[-1]))

        if len(self.plan.products) == 1:
            reset = self._stage("reset", lambda c, *i: c.reset([None, sums(1, i)]))
            states = self._stage(
                "states",
                lambda c, *i: c.mixed(
                    [sums(0, i)],
                    self._input(2, i) + reset(*i) * (self._product(product, 2, i) + added(i)),
                    before(*i),
                ),
            )
            return self._layer((before,), (product,), (states,), ((reset, states),))
        update = self._stage("update", lambda c, *i: c.gate(0, sums(0, i)))
        seen = self._stage("seen", lambda c, *i: c.reset([None, sums(1, i)]) * before(*i))
        last, second = self._sums(1, seen)
        states = self._stage(
            "states",
            lambda c, *i: c.between(update(*i), last(2, i) + added(i), before(*i)),
        )
        groups = (update, seen), (states,)
        return self._layer((before,), (product, second), (states,), groups)

    # ---- their parts

    def _stage(self, name: str, element: Callable[..., PrimExpr], **attrs: Attr) -> Tensor:
        """A stage of the cell of each direction; of two that differ, either is chosen."""

        def chosen(*i: PrimExpr) -> PrimExpr:
            first, *others = [element(c, *i) for c in self._different()]
            return tir.Select(i[1] == 0, first, others[0]) if others else first

        return te.compute(self.shape, chosen, name=name, **attrs)

    def _different(self) -> list[Cell]:
        return list(self.cells) if self.cells[0].words != self.cells[-1].words else [self.cells[0]]

    def _before(self, first: Tensor, name: str) -> Tensor:
        rows = extents(first)[1]

        def element(_: Cell, t: PrimExpr, d: PrimExpr, b: PrimExpr, j: PrimExpr) -> PrimExpr:
            return first(d, 0 if rows == 1 else self._row(b), self._unit(j))

        return self._stage(name, element, attrs={CARRIED: "a later step reads the one before"})

    def _sums(self, number: int, state: Tensor) -> tuple[Element, Tensor]:
        """The sums of some gates, and the product among them."""
        gates = self.plan.products[number]
        (k,) = reduce_axes(k=self.plan.depth)
        product = te.compute(
            (*self.shape[:3], self.plan.blocks, len(gates), BLOCK),
            lambda t, d, b, block, gate, lane: te.sum(
                self._times(
                    lambda j: state(t, d, b, j), k, self.weight(d, block, k, gates[0] + gate, lane)
                ),
                axis=k,
            ),
            name="products" if number == 0 else "candidates",
        )

        def element(gate: int, i: Sequence[PrimExpr]) -> PrimExpr:
            return self._input(gate, i) + self._product(product, gate - gates[0], i)

        return element, product

    def _times(
        self, state: Callable[[PrimExpr], PrimExpr], k: PrimExpr, weight: PrimExpr
    ) -> PrimExpr:
        word = self.plan.word
        if not word:
            return state(k) * weight
        levels = [state(k * word + i).astype("int32") for i in range(word)]
        return dot(self.plan.levels, word_of(levels), weight)

    def _product(self, product: Tensor, place: int, i: Sequence[PrimExpr]) -> PrimExpr:
        block, lane = tir.floordiv(i[-1], BLOCK), tir.floormod(i[-1], BLOCK)
        found = product(*i[:-1], block, place, lane)
        if self.rounding is None or self.w_scale is None:
            return found
        t, d = i[:2]
        point = self.rounding.point(t, d).astype("int32") + LEAST_OF[self.plan.levels]
        exact = found - self.weight(d, block, self.plan.depth, place, lane) * point
        return exact.astype("float32") * (self.rounding.scale(t, d) * of_axis(self.w_scale, d))

    def _input(self, gate: int, i: Sequence[PrimExpr]) -> PrimExpr:
        t, d, b, j = i
        column = (d * sum(map(len, self.plan.products)) + gate) * self.plan.units
        return self.gates(self._place(t, d), self._row(b), column + self._unit(j))

    def _place(self, t: PrimExpr, d: PrimExpr) -> PrimExpr:
        """Where a step of a direction is in the sequence."""
        back = self.plan.reversed
        turned = self.plan.length - 1 - t
        if len(back) == 1:
            return turned if back[0] else t
        return tir.Select(d == 0, t, turned)

    def _row(self, b: PrimExpr) -> PrimExpr:
        last = self.plan.batch - 1
        return b if self.plan.padded_batch == self.plan.batch else tir.Min(b, last)

    def _unit(self, j: PrimExpr) -> PrimExpr:
        last = self.plan.units - 1
        return j if self.shape[-1] == self.plan.units else tir.Min(j, last)

    def _layer(
        self,
        before: tuple[Tensor, ...],
        products: tuple[Tensor, ...],
        after: tuple[Tensor, ...],
        groups: tuple[tuple[Tensor, ...], ...],
    ) -> Layer:
        """With the results: the states after all steps, in the order of the sequence."""
        result = after if self.plan.is_direct else tuple(map(self._in_order, after))
        return Layer(before, products, after, groups, result)

    def _in_order(self, states: Tensor) -> Tensor:
        p = self.plan
        return te.compute(
            (p.length, len(p.reversed), p.batch, p.units),
            lambda t, d, b, j: states(self._place(t, d), d, b, j),
            name=f"{states.op.name}_in_order",
        )
