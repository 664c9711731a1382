"""Stages that give what another one computed a step before: TE has no stage that reads itself.

    for t:
        before[t, ...] = first[...]          # marked: of `state`, along t
        ...
        state[t, ...] = ... before[t, ...]
  ->
    for t:
        before[t, ...] = first[...] if t == 0 else state[t - 1, ...]

A compute marks such a stage; the schedule brings both under one loop over the steps, and says which
stage it carries on (`schedules/steps/carried.py`). All schedules keep every block inside of its
iteration, so that what runs before and after within a step stays so; what is checked here is that
the steps come one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from ..errors import ScheduleError
from ..tvm import region_buffer, tir, tvm
from ..tvm.rewrite import block_with, with_nodes
from ..tvm.types import PrimExpr, PrimFunc, Stmt, Tensor
from .te_blocks import te_order

CARRIED = "tefuse.carried"  # on a block: its first axis is the step, its values those at first
OF = "tefuse.carried_of"  # the block whose steps it carries on


@dataclass(frozen=True)
class _Placed:
    """A block, what its axes are bound to, and the loops around it from the outside in."""

    block: Stmt
    values: Sequence[Any]
    loops: tuple[Stmt, ...]

    @property
    def name(self) -> str:
        return str(self.block.name_hint)


def with_carried(func: PrimFunc) -> PrimFunc:
    """A scheduled function whose marked stages give what was computed a step before.

    Raises ScheduleError where a schedule does not keep the steps in their order.
    """
    placed = list(_placed(func.body, ()))
    marked = [p for p in placed if CARRIED in p.block.annotations]
    if not marked:
        return func
    of = {p.name: p for p in placed}
    states = {before.name: _state(before, of) for before in marked}
    kept = {state.name for state in states.values()}

    def changed(block: Stmt) -> Stmt:
        state = states.get(str(block.name_hint))
        if state is not None:
            return _carrying(block, state.block)
        return _in_order(block) if str(block.name_hint) in kept else block

    return with_nodes(func, lambda load: load, lambda store: store, changed)


def _placed(stmt: Stmt, loops: tuple[Stmt, ...]) -> Iterator[_Placed]:
    if isinstance(stmt, tir.For):
        yield from _placed(stmt.body, (*loops, stmt))
    elif isinstance(stmt, tir.SeqStmt):
        for each in stmt.seq:
            yield from _placed(each, loops)
    elif type(stmt).__name__.endswith("BlockRealize"):
        yield _Placed(stmt.block, stmt.iter_values, loops)
        yield from _placed(stmt.block.body, loops)


def _state(before: _Placed, of: Mapping[str, _Placed]) -> _Placed:
    """The block that computes the states, where the steps of both are in order."""
    name = before.block.annotations.get(OF)
    state = of.get(str(name)) if name is not None else None
    if state is None:
        text = f"no schedule says whose steps {before.name} carries on"
        raise ScheduleError(f"{text}: it would be the first state at every step")
    pairs = zip(before.loops, state.loops, strict=False)
    shared = [a for a, _ in takewhile(lambda pair: pair[0].same_as(pair[1]), pairs)]
    steps = next((n for n, loop in enumerate(shared) if _is(before.values[0], loop)), None)
    if steps is None or not _is(state.values[0], shared[steps]):
        raise ScheduleError(f"{before.name} and {state.name} have no common loop over the steps")
    if shared[steps].kind != tir.ForKind.SERIAL:
        raise ScheduleError(f"the loop over the steps of {state.name} is not serial")
    for loop in shared[:steps]:
        axes = [[n for n, v in enumerate(p.values) if _is(v, loop)] for p in (before, state)]
        if not axes[0] or axes[0] != axes[1]:
            text = f"the loop {loop.loop_var} around the steps"
            raise ScheduleError(f"{text} is not over one axis of {before.name} and {state.name}")
    return state


def _is(value: PrimExpr, loop: Stmt) -> bool:
    return bool(value.same_as(loop.loop_var))


def _carrying(before: Stmt, state: Stmt) -> Stmt:
    """The block with the state of the step before in its first values' place."""
    store, (step, *others) = before.body, (axis.var for axis in before.iter_vars)
    states = region_buffer(state.writes[0])
    earlier = [tir.max(step - 1, 0), *others]
    value = tir.if_then_else(step == 0, store.value, tir.BufferLoad(states, earlier))
    one = [tvm.ir.Range.from_min_extent(index, 1) for index in earlier]
    reads = [*before.reads, tir.BufferRegion(states, one)]
    body = tir.BufferStore(store.buffer, value, store.indices)
    return _in_order(block_with(before, reads, before.writes, body, before.alloc_buffers))


def _in_order(block: Stmt) -> Stmt:
    """A block whose first axis is no parallel one: TVM would keep the states of one step only, in a
    buffer inside of the loop.
    """
    step, *others = block.iter_vars
    ordered = tir.IterVar(step.dom, step.var, tir.IterVar.Ordered)
    return block_with(
        block, block.reads, block.writes, block.body, block.alloc_buffers, [ordered, *others]
    )


def states_beside(outputs: Sequence[Tensor], results: Sequence[Tensor]) -> list[Tensor]:
    """Of the results that nobody reads those that a later step does: TE leaves out what no output
    needs.
    """
    there = set(te_order(outputs))
    if not any(CARRIED in (op.attrs or {}) for op in there):
        return []
    # A copy of a state that is computed anyway is no state.
    made = [t.op.input_tensors if len(t.op.input_tensors) == 1 else [t] for t in results]
    return [t for t, (state,) in zip(results, made, strict=True) if state.op not in there]
