"""Choose the order of each op's axes, so that transposes move the fewest bytes.

An op that takes another order asks its neighbours for the same. A region grows from an op at a
transpose, by the neighbour that costs least, and what was best on the way is kept if it pays.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..graph import OpCall
from .axes import Order, following, identity, inverse
from .flow import Cost, Flow

Orders = dict[int, Order]  # id of an op -> the order of its axes
Step = tuple[OpCall, Order]


def choose_orders(flow: Flow) -> Orders:
    """id of an op -> the order of its axes, for the ops that may have another one.

    No region is taken that does not pay, so the result moves as little as the start or less.
    """
    orders = dict(_start(flow))
    improved = True
    while improved:
        improved = False
        for call in flow.graph.ops:
            for order in _asked(flow, call, orders):
                grown = _grown(flow, (call, order), orders)
                if grown:
                    orders.update(grown)
                    improved = True
    return orders


def _start(flow: Flow) -> Iterator[tuple[int, Order]]:
    """The order that an op has; the one that was asked for where this is not allowed."""
    for call in flow.graph.ops:
        axes = flow.axes.get(id(call))
        if axes is not None:
            own = identity(axes.rank)
            yield id(call), own if axes.forced is None else axes.forced


def _asked(flow: Flow, call: OpCall, orders: Orders) -> list[Order]:
    """The orders under which one more value needs no transpose at this op."""
    axes = flow.axes.get(id(call))
    if axes is None:
        return []
    now, found = orders[id(call)], []
    for index, read in enumerate(call.inputs):
        value, seen = flow.resolve(read)
        back = inverse(seen)
        if not value.is_constant:
            wanted = tuple(back[axis] for axis in flow.stored(value, orders))
            found.append(following(axes.inputs[index], wanted, now))
    for index, value in enumerate(call.outputs):
        for use in flow.uses.get(id(value), ()):
            found.append(following(axes.outputs[index], flow.wanted(use, orders), now))
    return [o for o in dict.fromkeys(found) if o != now and axes.allows(o)]


def _grown(flow: Flow, first: Step, orders: Orders) -> Orders:
    """The region from one op on that pays most; empty if none does."""
    trial, taken = dict(orders), {}
    total = best = Cost(0)
    kept: Orders = {}
    waiting: dict[tuple[int, Order], OpCall] = {(id(first[0]), first[1]): first[0]}
    while waiting:
        costs = {
            (at, order): _change(flow, call, order, trial) for (at, order), call in waiting.items()
        }
        at, order = min(costs, key=lambda step: (costs[step].key(), flow.place[step[0]], step[1]))
        call, total = waiting[at, order], total + costs[at, order]
        trial[at] = taken[at] = order
        if total.key() < best.key():
            best, kept = total, dict(taken)
        waiting = {step: c for step, c in waiting.items() if step[0] != at}
        for near in _neighbours(flow, call, taken):
            waiting.update({(id(near), o): near for o in _asked(flow, near, trial)})
    return kept


def _change(flow: Flow, call: OpCall, order: Order, orders: Orders) -> Cost:
    """By how much the cost grows if an op takes another order."""
    changed, values = {**orders, id(call): order}, list(flow.touched(call))
    parts = (flow.cost(v, changed) - flow.cost(v, orders) for v in values)
    return sum(parts, Cost(0))


def _neighbours(flow: Flow, call: OpCall, taken: Orders) -> Iterator[OpCall]:
    """The ops that share a value with one, and have no new order yet."""
    found: dict[int, OpCall] = {}
    for value in flow.touched(call):
        ops = (flow.graph.producer(value), *(use.call for use in flow.uses.get(id(value), ())))
        found.update({id(near): near for near in ops if near is not None})
    yield from (near for at, near in found.items() if at in flow.axes and at not in taken)
