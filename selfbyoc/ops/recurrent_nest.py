"""A recurrent layer as one plain loop nest in the order of its steps: TE has no stage that reads
itself, and ops left to TVM must be right under whatever schedule it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..graph import OpCall
from ..tvm import dtype_of, te, tir
from ..tvm.rewrite import sequence
from ..tvm.types import Buffer, PrimVar
from .cells import DIRECTIONS, Cell, cells
from .kind import is_one

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr, Tensor

Read = Callable[["PrimExpr"], "PrimExpr"]  # an element of a state, by its unit
Stmt = Any


def plain(ins: Sequence[Tensor], call: OpCall) -> Tensor | tuple[Tensor, ...]:
    """The states of all steps, and an LSTM's cell states."""
    (length, batch, _), (directions, _, units) = ins[0].shape, ins[1].shape
    results = [(length, directions, batch, units)] * len(call.outputs)
    made = cells(call.kind, call.attrs)
    scratch = [(made[0].gates, units), *([(4,), (units,)] if made[0].rounds else [])]

    def nest(given: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        sides = DIRECTIONS[call.attrs["direction"]]
        nests = [_Direction(d, back, made[d], given, outs) for d, back in enumerate(sides)]
        return sequence([each.steps() for each in nests])

    # Buffers of ours: TVM's own begin at a variable that a stock 0.17 finds undefined where such a
    # result is no output.
    dtype = call.outputs[0].dtype
    found = te.extern(
        [*results, *scratch], list(ins), nest, name=call.name, dtype=None,
        in_buffers=[tir.decl_buffer(x.shape, x.dtype, x.op.name) for x in ins],
        out_buffers=[tir.decl_buffer(shape, dtype, call.name) for shape in (*results, *scratch)],
    )  # fmt: skip
    return found[0] if len(results) == 1 else list(found[: len(results)])


class _Direction:
    """The nest of one direction; `sums` [gate, unit] are those of a step, `rounded` [unit] the
    state that its products are of, `range` its least and largest value, scale and zero point.
    """

    def __init__(
        self, number: int, back: bool, cell: Cell, ins: Sequence[Buffer], outs: Sequence[Buffer]
    ) -> None:
        self.number, self.back, self.cell = number, back, cell
        self.gates, self.weight, self.hidden, *self.own = ins
        self.states, *rest = outs
        if cell.rounds:
            *rest, self.range, self.rounded = rest
        *self.cells, self.sums = rest
        self.length, _, self.batch, self.units = self.states.shape  # numbers, or open sizes

    def steps(self) -> Stmt:
        def step(t: PrimExpr) -> Stmt:
            rows = for_loop(self.batch, "b", lambda b: self._step(t, b))
            return sequence([*self._found_range(t), rows]) if self.cell.rounds else rows

        return for_loop(self.length, "t", step)

    def _step(self, t: PrimExpr, b: PrimExpr) -> Stmt:
        place = self.length - 1 - t if self.back else t
        before = self._before(t, b, self.states, self.hidden)
        if self.cell.kind == "gru":
            return self._gru(place, b, before)
        seen, rounding = self._rounded(before) if self.cell.rounds else (before, [])
        products = [self._product(g, seen, self._input(place, b, g)) for g in self._all()]
        old = self._before(t, b, self.cells[0], self.own[0]) if self.cells else None
        updated = self._each(lambda j: self._updated(place, b, j, old))
        return sequence([*rounding, *products, updated])

    def _updated(self, place: PrimExpr, b: PrimExpr, j: PrimExpr, old: Read | None) -> Stmt:
        sums = [self._sum(g, j) for g in self._all()]
        if old is None:
            return self._store(self.states, (place, b, j), self.cell.gate(0, sums[0]))
        looks = [self._look(n, j) for n in range(3)] if len(self.own) > 1 else ()
        new = self.cell.cell_state(sums, old(j), looks)
        kept = self._load(self.cells[0], (place, b, j))
        return sequence([
            self._store(self.cells[0], (place, b, j), new),
            self._store(self.states, (place, b, j), self.cell.hidden_state(sums, kept, looks)),
        ])  # fmt: skip

    def _gru(self, place: PrimExpr, b: PrimExpr, before: Read) -> Stmt:
        """The reset gate takes its sum's place, times the state where the product is of both."""
        is_late = self.cell.attrs["linear_before_reset"]
        products = [self._product(g, before, self._input(place, b, g)) for g in range(2)]

        def gate(j: PrimExpr) -> Stmt:
            value = self.cell.reset([None, self._sum(1, j)])
            value = value if is_late else value * before(j)
            return tir.BufferStore(self.sums, value, [1, j])

        def seen(k: PrimExpr) -> PrimExpr:
            return before(k) if is_late else self._sum(1, k)

        def mixed(j: PrimExpr) -> Stmt:
            product = self._sum(2, j) * self._sum(1, j) if is_late else self._sum(2, j)
            candidate = self._input(place, b, 2)(j) + product
            new = self.cell.mixed([self._sum(0, j)], candidate, before(j))
            return self._store(self.states, (place, b, j), new)

        def bias(j: PrimExpr) -> PrimExpr:
            return tir.BufferLoad(self.own[0], [self.number, j])

        last = self._product(2, seen, bias)
        return sequence([*products, self._each(gate), last, self._each(mixed)])

    def _found_range(self, t: PrimExpr) -> list[Stmt]:
        """Of the state before a step, with 0, over the whole batch; and the scale and zero point of
        8 bits, as ONNX's DynamicQuantizeLinear has them.
        """
        low, high, scale, _ = known = [tir.BufferLoad(self.range, [n]) for n in range(4)]
        one, most = (tir.const(n, self.range.dtype) for n in (1, 255))

        def put(n: int, value: PrimExpr) -> Stmt:
            return tir.BufferStore(self.range, value, [n])

        def widened(b: PrimExpr, k: PrimExpr) -> Stmt:
            value = self._before(t, b, self.states, self.hidden)(k)
            return sequence([put(0, tir.min(known[0], value)), put(1, tir.max(known[1], value))])

        spread = tir.Select(high > low, (high - low) / most, one)
        zero = tir.max(one - one, tir.min(most, tir.nearbyint((one - one - low) / scale)))
        rows = for_loop(
            self.batch, "b", lambda b: for_loop(self.units, "k", lambda k: widened(b, k))
        )
        return [put(0, one - one), put(1, one - one), rows, put(2, spread), put(3, zero)]

    def _rounded(self, before: Read) -> tuple[Read, list[Stmt]]:
        """A row of the state as 8 bits give it back, and what computes it."""
        scale, zero = (tir.BufferLoad(self.range, [n]) for n in (2, 3))
        most = tir.const(255, self.range.dtype)

        def store(k: PrimExpr) -> Stmt:
            place = tir.nearbyint(before(k) / scale) + zero
            held = tir.max(most - most, tir.min(most, place))
            return tir.BufferStore(self.rounded, (held - zero) * scale, [k])

        return (lambda k: tir.BufferLoad(self.rounded, [k])), [self._each(store)]

    def _product(self, gate: int, state: Read, first: Read) -> Stmt:
        """The sums of a gate: what they begin with, and the state times its weights."""

        def row(j: PrimExpr) -> Stmt:
            def step(k: PrimExpr) -> Stmt:
                weight = tir.BufferLoad(self.weight, [self.number, gate * self.units + j, k])
                return tir.BufferStore(self.sums, self._sum(gate, j) + state(k) * weight, [gate, j])

            start = tir.BufferStore(self.sums, first(j), [gate, j])
            return sequence([start, for_loop(self.units, "k", step)])

        return self._each(row)

    def _before(self, t: PrimExpr, b: PrimExpr, states: Buffer, first: Buffer) -> Read:
        """A state before a step: what was given, or that of the step before."""
        earlier = self.length - t if self.back else t - 1
        inside = tir.max(0, tir.min(self.length - 1, earlier))

        def read(k: PrimExpr) -> PrimExpr:
            row = 0 if is_one(first.shape[1]) else b  # one for the whole batch
            given = tir.BufferLoad(first, [self.number, row, k])
            return tir.if_then_else(t == 0, given, self._load(states, (inside, b, k)))

        return read

    def _input(self, place: PrimExpr, b: PrimExpr, gate: int) -> Read:
        column = (self.number * self.cell.gates + gate) * self.units
        return lambda j: tir.BufferLoad(self.gates, [place, b, column + j])

    def _look(self, n: int, j: PrimExpr) -> PrimExpr:
        return tir.BufferLoad(self.own[1], [self.number, n * self.units + j])

    def _sum(self, gate: int, j: PrimExpr) -> PrimExpr:
        return tir.BufferLoad(self.sums, [gate, j])

    def _load(self, states: Buffer, at: tuple[PrimExpr, PrimExpr, PrimExpr]) -> PrimExpr:
        return tir.BufferLoad(states, [at[0], self.number, at[1], at[2]])

    def _store(
        self, states: Buffer, at: tuple[PrimExpr, PrimExpr, PrimExpr], value: PrimExpr
    ) -> Stmt:
        return tir.BufferStore(states, value, [at[0], self.number, at[1], at[2]])

    def _all(self) -> range:
        return range(self.cell.gates)

    def _each(self, body: Callable[[PrimExpr], Stmt]) -> Stmt:
        return for_loop(self.units, "j", body)


def for_loop(extent: PrimExpr, name: str, body: Callable[[PrimVar], Stmt]) -> Stmt:
    """A serial loop from 0; `body` makes its statement of the variable."""
    dtype = dtype_of(extent)
    var = tir.Var(name, dtype)
    return tir.For(var, tir.const(0, dtype), extent, tir.ForKind.SERIAL, body(var))
