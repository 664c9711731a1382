"""Choose the order of each op's axes, so that transposes move the fewest bytes.

An op that takes another order asks its neighbours for the same. A region grows from an op at a
transpose, by the neighbour that costs least, and what was best on the way is kept if it pays.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import OpCall
from .axes import Order, following, identity, inverse
from .flow import Cost, Flow

Orders = dict[OpCall, Order]  # an op -> the order of its axes
Step = tuple[OpCall, Order]


def choose_orders(flow: Flow) -> Orders:
    """an op -> the order of its axes, for the ops that may have another one.

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


def _start(flow: Flow) -> Iterator[tuple[OpCall, Order]]:
    """The order that an op has; the one that was asked for where this is not allowed."""
    for call in flow.graph.ops:
        axes = flow.axes.get(call)
        if axes is not None:
            own = identity(axes.rank)
            yield call, own if axes.forced is None else axes.forced


def _asked(flow: Flow, call: OpCall, orders: Orders) -> list[Order]:
    """The orders under which one more value needs no transpose at this op."""
    axes = flow.axes.get(call)
    if axes is None:
        return []
    now, found = orders[call], []
    for index, read in enumerate(call.inputs):
        value, seen = flow.resolve(read)
        back = inverse(seen)
        if not value.is_constant:
            wanted = tuple(back[axis] for axis in flow.stored(value, orders))
            found.append(following(axes.inputs[index], wanted, now))
    for index, value in enumerate(call.outputs):
        for use in flow.uses.get(value, ()):
            found.append(following(axes.outputs[index], flow.wanted(use, orders), now))
    return [o for o in dict.fromkeys(found) if o != now and axes.allows(o)]


def _grown(flow: Flow, first: Step, orders: Orders) -> Orders:
    """The region from one op on that pays most; empty if none does."""
    trial, taken = dict(orders), {}
    total = best = Cost(0)
    kept: Orders = {}
    waiting = {first: None}
    while waiting:
        costs = {(call, order): _change(flow, call, order, trial) for call, order in waiting}
        call, order = min(costs, key=lambda step: (costs[step].key(), flow.place[step[0]], step[1]))
        total += costs[call, order]
        trial[call] = taken[call] = order
        if total.key() < best.key():
            best, kept = total, dict(taken)
        waiting = {step: None for step in waiting if step[0] is not call}
        for near in _neighbours(flow, call, taken):
            waiting.update({(near, o): None for o in _asked(flow, near, trial)})
    return kept


def _change(flow: Flow, call: OpCall, order: Order, orders: Orders) -> Cost:
    """By how much the cost grows if an op takes another order."""
    changed, values = {**orders, call: order}, list(flow.touched(call))
    parts = (flow.cost(v, changed) - flow.cost(v, orders) for v in values)
    return sum(parts, Cost(0))


def _neighbours(flow: Flow, call: OpCall, taken: Orders) -> Iterator[OpCall]:
    """The ops that share a value with one, and have no new order yet."""
    found: dict[OpCall, None] = {}
    for value in flow.touched(call):
        ops = (flow.graph.producer(value), *(use.call for use in flow.uses.get(value, ())))
        found.update({near: None for near in ops if near is not None})
    yield from (near for near in found if near in flow.axes and near not in taken)
