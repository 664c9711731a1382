"""What a program moves: which op reads which value in which order, with transposes taken out.

A transpose is no op here. It is how its readers see the value that it is made of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...graph import OpCall, OpGraph, Value
from .axes import Axes, Order, compose, identity

Orders = Mapping[OpCall, Order]  # an op -> the order of its axes; ops that are not in it stay
Key = tuple[int, ...]  # an order of the axes that are longer than 1: what has to be moved


@dataclass(frozen=True)
class Use:
    """One reader of a value: an input of an op, or an output of the graph (no op)."""

    call: OpCall | None
    index: int
    seen: Order  # the reader's axis -> the value's


@dataclass(frozen=True)
class Cost:
    """Less is better: bytes that are moved, then ops that a transpose or a reshape cuts off from
    their input's producer.
    """

    bytes: int
    cuts: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.bytes + other.bytes, self.cuts + other.cuts)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.bytes - other.bytes, self.cuts - other.cuts)

    def key(self) -> tuple[int, int]:
        """To compare by."""
        return self.bytes, self.cuts


def size(value: Value) -> int:
    """Bytes; an extent that is not known counts as 1: a batch is in all that is compared."""
    bits = int((re.findall(r"\d+", value.dtype) or ["8"])[0])
    return math.prod(1 if e is None else e for e in value.shape) * max(bits, 8) // 8


def key_of(value: Value, order: Order) -> Key:
    """The same for orders that lie alike in memory: an axis of extent 1 may be anywhere."""
    return tuple(axis for axis in order if value.shape[axis] != 1) if value.is_static else order


def _is_cut(reader: OpCall | None) -> bool:
    return reader is not None and reader.kind != "reshape"


class Flow:
    """The values of a graph without its transposes, and who reads them how."""

    def __init__(
        self, graph: OpGraph, transposes: Mapping[OpCall, Order], axes: Mapping[OpCall, Axes]
    ) -> None:
        self.graph, self.transposes, self.axes = graph, transposes, axes
        self.seen: dict[Value, tuple[Value, Order]] = {}
        self.uses: dict[Value, list[Use]] = {}
        self.place = {call: position for position, call in enumerate(graph.ops)}
        self.values: dict[Value, None] = {}
        for call in graph.ops:
            self._add(call)
        for index, value in enumerate(graph.outputs):
            self._use(value, None, index)

    def _add(self, call: OpCall) -> None:
        if call not in self.transposes:
            for index, value in enumerate(call.inputs):
                self._use(value, call, index)
            return
        value, seen = self.resolve(call.inputs[0])
        self.seen[call.outputs[0]] = value, compose(seen, self.transposes[call])

    def _use(self, read: Value, call: OpCall | None, index: int) -> None:
        value, seen = self.resolve(read)
        self.values[value] = None
        self.uses.setdefault(value, []).append(Use(call, index, seen))

    def resolve(self, value: Value) -> tuple[Value, Order]:
        """The value that a transpose is made of, and the order that it is seen in."""
        return self.seen.get(value, (value, identity(value.ndim)))

    def stored(self, value: Value, orders: Orders) -> Order:
        """The order in which a value is written."""
        call = self.graph.producer(value)
        if call is None or call not in orders:
            return identity(value.ndim)
        index = next(i for i, v in enumerate(call.outputs) if v is value)
        return self.axes[call].output_order(index, orders[call])

    def wanted(self, use: Use, orders: Orders) -> Order:
        """The order of the value's axes in which a reader takes it."""
        if use.call is None or use.call not in orders:
            return use.seen
        order = self.axes[use.call].input_order(use.index, orders[use.call])
        return compose(use.seen, order)

    def cost(self, value: Value, orders: Orders) -> Cost:
        """What it takes to bring a value to its readers. A constant is written as they want it."""
        if value.is_constant:
            return Cost(0)
        there, uses = self.stored(value, orders), self.uses.get(value, ())
        orders_read = [(self.wanted(use, orders), use) for use in uses]
        moved = {key_of(value, order) for order, _ in orders_read} - {key_of(value, there)}
        produced = self.graph.producer(value) is not None
        # A reshape cuts as well: axes of extent 1 elsewhere. Two in a row are one.
        cuts = sum(order != there and _is_cut(use.call) for order, use in orders_read)
        return Cost(size(value) * len(moved), cuts if produced else 0)

    def total(self, orders: Orders) -> Cost:
        """Of the whole graph."""
        return sum((self.cost(v, orders) for v in self.values), Cost(0))

    def count(self, orders: Orders) -> int:
        """How many transposes move something."""
        found = 0
        for value in self.values:
            keys = {key_of(value, self.wanted(u, orders)) for u in self.uses[value]}
            there = {key_of(value, self.stored(value, orders))}
            found += 0 if value.is_constant else len(keys - there)
        return found

    def written(self) -> tuple[int, int]:
        """How many transposes the graph was written with that move something, and their bytes."""
        calls = (call for call in self.graph.ops if call in self.transposes)
        moved = [v for call in calls for v in call.inputs if self._is_moved(call, v)]
        return len(moved), sum(map(size, moved))

    def _is_moved(self, call: OpCall, value: Value) -> bool:
        base, _ = self.resolve(value)
        order = self.transposes[call]
        same = key_of(value, order) == key_of(value, identity(value.ndim))
        return not base.is_constant and not same

    def touched(self, call: OpCall) -> Iterator[Value]:
        """The values that an op reads or writes, each once."""
        inputs = (self.resolve(v)[0] for v in call.inputs)
        yield from dict.fromkeys((*inputs, *call.outputs))
