"""A program with the axes of its ops in the orders that were chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph import OpCall, Value
from ...ir.generation import writer
from ...tvm import constant_numpy
from ...tvm.types import Expr, Span
from .axes import Axes, Order, compose, identity
from .flow import Flow, Key, Orders, key_of


class Rewriter:
    """Expressions for values, in whatever order they are asked for.

    Transposes are made where the first reader asks, and shared by the rest.
    """

    def __init__(self, flow: Flow, orders: Orders, constants: dict[Value, Expr]) -> None:
        self.flow, self.orders, self.constants = flow, orders, constants
        self.known: dict[tuple[Value, Key], tuple[Expr, Order]] = {}
        self.own: dict[Value, tuple[Expr, Order]] = {}  # a value -> as its producer wrote it

    def put(self, value: Value, expr: Expr, order: Order | None = None) -> None:
        """A value that is there, in this order of its axes."""
        order = identity(value.ndim) if order is None else order
        self.own[value] = expr, order
        self.known[value, key_of(value, order)] = expr, order

    def has(self, value: Value) -> bool:
        """Whether a value is there, in whatever order."""
        return self.flow.resolve(value)[0] in self.own

    def read(self, read: Value, order: Order | None = None) -> Expr:
        """A value in this order; None: as the program had it."""
        value, seen = self.flow.resolve(read)
        wanted = seen if order is None else compose(seen, order)
        if value not in self.own:
            self.put(value, self.constants[value])
        key = value, key_of(value, wanted)
        if key not in self.known:
            self.known[key] = self._moved(value, wanted), wanted
        return self._same_memory(value, *self.known[key], wanted)

    def _moved(self, value: Value, wanted: Order) -> Expr:
        expr, there = self.own[value]
        axes = tuple(map(there.index, wanted))
        if value in self.constants:
            array = constant_numpy(expr).transpose(axes)
            return writer.constant(np.ascontiguousarray(array))
        return writer.emit_call("transpose", [expr], {"axes": axes})

    def _same_memory(self, value: Value, expr: Expr, there: Order, wanted: Order) -> Expr:
        """Axes of extent 1 put elsewhere."""
        old, new = ([value.shape[axis] for axis in order] for order in (there, wanted))
        return expr if old == new else self._reshaped(value, expr, new)

    def _reshaped(self, value: Value, expr: Expr, shape: Sequence[int]) -> Expr:
        if value in self.constants:
            return writer.constant(constant_numpy(expr).reshape(shape))
        return writer.emit_call("reshape", [expr], {"shape": tuple(shape)})

    def arguments(self, call: OpCall) -> list[Expr]:
        """The inputs of an op in a new order."""
        axes, order = self.flow.axes[call], self.orders[call]
        found = []
        for index, value in enumerate(call.inputs):
            expr = self.read(value, axes.input_order(index, order))
            found.append(self._spread(value, expr, axes, index, order))
        return found

    def _spread(self, value: Value, expr: Expr, axes: Axes, index: int, order: Order) -> Expr:
        """An operand of fewer axes, with axes of extent 1 between those that it has."""
        own = axes.inputs[index]
        if axes.attrs is not None or len(own) in (0, axes.rank):
            return expr
        shape = [value.shape[own.index(axis)] if axis in own else 1 for axis in order]
        return self._reshaped(self.flow.resolve(value)[0], expr, shape)

    def write(self, call: OpCall, as_it_was: Callable[[list[Expr]], Expr]) -> None:
        """An op in its new order; `as_it_was` calls the same op with other arguments."""
        attrs, args = self.flow.axes[call].attrs, self.arguments(call)
        if attrs is None:
            self._wrote(call, as_it_was(args))
        else:
            new = attrs(self.orders[call])
            self._wrote(call, writer.emit_call(call.kind, args, new, _span(call)))

    def _wrote(self, call: OpCall, expr: Expr) -> None:
        """The outputs of an op in a new order."""
        axes, order = self.flow.axes[call], self.orders[call]
        for index, value in enumerate(call.outputs):
            if len(call.outputs) == 1:
                self.put(value, expr, axes.output_order(index, order))
            elif value in self.flow.uses:
                self.put(value, writer.emit_item(expr, index), axes.output_order(index, order))

    def is_transpose(self, call: OpCall) -> bool:
        """Whether an op is only how its readers see its input."""
        return call in self.flow.transposes

    def is_moved(self, call: OpCall) -> bool:
        """Whether an op has a new order."""
        order = self.orders.get(call)
        return order is not None and order != identity(len(order))


def _span(call: OpCall) -> Span:
    """What an op comes from, as its IR says it."""
    spans = (getattr(source, "span", None) for source in call.sources)
    return next((span for span in spans if span is not None), None)
