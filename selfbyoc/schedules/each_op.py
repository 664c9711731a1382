"""A schedule made of one for each op: stacked in one kernel, no op under the loops of another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ..codegen.info.accesses import blocks_of, label_of
from ..codegen.info.ops import Ops
from ..errors import ScheduleError, SelfbyocError, did_you_mean
from ..language.raised import cause, in_words
from ..ops.vocabulary import written
from ..tvm.types import Schedule, Target
from .default import schedule_blocks
from .steps.blocks import Facts, facts
from .steps.loops import Finish, inline_injective

if TYPE_CHECKING:
    from ..codegen.info.ops import OpView

OpSchedule = Callable[[Any, Any, Any], Finish | None]


def each_op(schedules: Mapping[str, OpSchedule]) -> EachOp:
    """A schedule for `Composite(schedule=...)` that gives each op its own and fuses none of them.

    `schedules` has for a kind of op a function `(sch, op, target)`: it schedules the blocks of this
    op (`op.blocks`, of which `op.block` computes the result) and may return a function, which is
    called when all ops are scheduled (a reduction is decomposed last). Other kinds are scheduled by
    default. All results stay buffers of the kernel. Raises ScheduleError for what is no kind of op
    or no function; while scheduling, for one that raises, or that moves an op into another.
    """
    given = cast(Any, schedules)
    if not isinstance(given, Mapping):
        raise ScheduleError(f"each_op: expected {{kind of op: function}}, found {given!r}")
    for kind, function in given.items():
        if kind not in written():
            meant = did_you_mean(str(kind), written())
            raise ScheduleError(f"each_op: {kind!r} is no kind of op{meant}")
        if not callable(function):
            raise ScheduleError(
                f"each_op: the schedule of {kind!r}: expected a function, found {function!r}"
            )
    return EachOp(dict(given))


@dataclass(frozen=True)
class EachOp:
    """What `each_op` returns. A composite compares `kinds` with its pattern."""

    schedules: Mapping[str, OpSchedule]

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of op that have a schedule here."""
        return self.schedules.keys()

    def __call__(self, sch: Schedule, ops: Ops, target: Target) -> None:
        # 1. Constants are no results: they are written where they are read.
        for block in facts(sch):
            if not block.stmt.reads and not block.is_output:
                sch.compute_inline(block.block)
        # 2. Op by op.
        results = _results(sch)
        finish: list[Finish] = []
        for op in ops:
            if op.kind in self.schedules:
                finish += _own(sch, op, target, self.schedules[op.kind])
                _check_apart(sch, op, results)
            else:
                finish += _default(sch, op, target, results)
        # 3. Accumulators are set apart from the sums when nothing else is left to do.
        for last in finish:
            last()


def _results(sch: Schedule) -> dict[str, str]:
    """Label of a block -> the op whose result it computes, for what other ops or the caller read.

    A block keeps its label whatever becomes of it, and loses it when it is inlined.
    """
    return {
        label_of(block.stmt): _op_of(block)
        for block in facts(sch)
        if block.is_output or any(_op_of(c) != _op_of(block) for c in block.consumers)
    }


def _op_of(block: Facts) -> str:
    return label_of(block.stmt).rpartition(":")[0]


def _own(sch: Schedule, op: OpView, target: Target, schedule: OpSchedule) -> list[Finish]:
    if not op.blocks:
        raise ScheduleError(
            f"each_op: {op.name} has no block of its own{_within(op)}; "
            f"expected a compute for each op, not one for several"
        )
    try:
        last = cast(Any, schedule(sch, op, target))
    except SelfbyocError:
        raise
    except Exception as err:  # whatever a user's function raises is its own error
        text = f"each_op: the schedule of {op.kind!r}, at {op.name}, raised"
        raise ScheduleError(f"{text} {type(err).__name__}: {in_words(err)}") from cause(err)
    if last is not None and not callable(last):
        text = f"each_op: the schedule of {op.kind!r}: expected None or a function to call at last"
        raise ScheduleError(f"{text}, found {last!r}")
    return [last] if last is not None else []


def _within(op: OpView) -> str:
    return f": {op.info.within} computes it" if op.info.within else ""


def _check_apart(sch: Schedule, op: OpView, results: Mapping[str, str]) -> None:
    """No result was inlined, and no loop holds blocks of two ops."""
    text = f"each_op: the schedule of {op.kind!r}, at {op.name}"
    present = {label_of(block) for block in blocks_of(sch.mod["main"])}
    if gone := sorted({owner for label, owner in results.items() if label not in present}):
        raise ScheduleError(f"{text}, inlined the result of {gone[0]}; expected each op by itself")
    holder: list[tuple[Any, str]] = []  # of each outermost loop, the op whose blocks it holds
    for block in facts(sch):
        loops, owner = sch.get_loops(block.block), _op_of(block)
        if not loops or not owner:
            continue
        first = sch.get(loops[0])
        other = next((o for loop, o in holder if loop.same_as(first)), owner)
        if other != owner:
            raise ScheduleError(f"{text}, put {other} and {owner} under one loop")
        holder.append((first, owner))


def _default(sch: Schedule, op: OpView, target: Target, results: Mapping[str, str]) -> list[Finish]:
    """What the default schedule does to the blocks of one op, its result not inlined."""
    stay = {b.name for b in facts(sch) if _op_of(b) != op.name or label_of(b.stmt) in results}
    inline_injective(sch, stay)
    return schedule_blocks(sch, [b for b in facts(sch) if _op_of(b) == op.name], target)
