"""One step for the common case of a schedule: an op under a loop of the op that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..codegen.info.accesses import blocks_of, label_of
from ..codegen.info.ops import OpView
from ..errors import ScheduleError, did_you_mean
from ..tvm import get_block
from ..tvm.tune import schedule_error
from ..tvm.types import Block, Loop, PrimVar, Schedule
from .steps.blocks import Facts
from .steps.indices import Axis


def melt(
    sch: Schedule, producer: OpView | Block | str, *, into: OpView | Block | str, at: Loop | int
) -> Loop:
    """Compute `producer` under a loop of `into`, which reads it -> that loop.

    producer, into  ops of the schedule (`ops.dense`), names of ops or of blocks, or blocks; all
                    blocks of a producer move, such as the padding of a convolution
    at              a loop of the consumer, or the number of an axis of its result: then the
                    outermost loop of that axis

    Of a chain, melt the last op first. Raises ScheduleError with both names where it cannot.
    """
    made, reader = _part(sch, producer, "producer"), _part(sch, into, "consumer")
    text = f"melt {made.name} into {reader.name}"
    if made.result.is_output:
        raise ScheduleError(f"{text}: {made.name} is a result of the kernel, not only read in it")
    loop = _loop(reader, at, text)
    _check_readers(made, reader, loop, text)
    for block in reversed(made.blocks):
        if not block.axes or not block.stmt.reads:
            continue  # a constant has no loops to move
        try:
            sch.compute_at(block.block, loop)
        except schedule_error() as err:
            raise ScheduleError(f"{text}: {block.name} cannot move: {_said(err)}") from err
    return loop


@dataclass(frozen=True)
class _Part:
    """An op, or one block, by its name; the last of its blocks computes the result."""

    name: str
    blocks: Sequence[Facts]

    @property
    def result(self) -> Facts:
        return self.blocks[-1]


def _part(sch: Schedule, given: OpView | Block | str, label: str) -> _Part:
    """What was given as the producer or the consumer, if it is there."""
    if isinstance(given, OpView):
        if not given.blocks:
            within = f": {given.info.within} computes it" if given.info.within else ""
            raise ScheduleError(f"melt: the {label} {given.name} has no block{within}{_NO_BLOCK}")
        return _Part(given.name, [Facts(sch, block) for block in given.blocks])
    if isinstance(given, str):
        return _Part(given, [Facts(sch, block) for block in _named(sch, given, label)])
    try:
        found = Facts(sch, given)
    except ValueError as err:  # what TVM raises for a block that was inlined
        raise ScheduleError(f"melt: the {label} is a block that is gone{_NO_BLOCK}") from err
    except (AttributeError, TypeError) as err:
        text = f"melt: the {label}: expected an op, its name or a block, found {given!r}"
        raise ScheduleError(text) from err
    return _Part(found.name, [found])


_NO_BLOCK = "; expected one that is not inlined"


def _named(sch: Schedule, name: str, label: str) -> list[Block]:
    """The block of this name, or the blocks of the op."""
    found = blocks_of(sch.mod["main"])
    blocks = [str(b.name_hint) for b in found]
    owners = [label_of(b).rpartition(":")[0] for b in found]
    if name in owners:
        return [get_block(sch, b) for b, owner in zip(blocks, owners, strict=True) if owner == name]
    if name in blocks:
        return [get_block(sch, name)]
    known = sorted({*blocks, *owners} - {""})
    raise ScheduleError(
        f"melt: the {label} {name!r} is no op and no block here, or inlined; there are "
        f"{known}{did_you_mean(name, known)}"
    )


def _loop(reader: _Part, at: Loop | int, text: str) -> Loop:
    """The loop that `at` says, over no reduced axis of the consumer."""
    block = reader.result
    loops = list(block.sch.get_loops(block.block))
    used = block.variables
    if isinstance(at, int):
        return _loop_of_axis(reader, at, loops, used, text)
    try:
        wanted = block.sch.get(at)
    except (TypeError, ValueError) as err:
        raise ScheduleError(f"{text}: at: expected a loop or a number, found {at!r}") from err
    if not any(block.sch.get(loop).same_as(wanted) for loop in loops):
        names = [str(block.sch.get(loop).loop_var.name) for loop in loops]
        raise ScheduleError(f"{text}: at: expected one of {reader.name}'s loops {names}")
    for axis, variables in zip(block.axes, used, strict=True):
        if axis.reduces and any(v.same_as(wanted.loop_var) for v in variables):
            raise ScheduleError(f"{text}: the loop is over {_reduced(block, axis)}")
    return at


def _loop_of_axis(
    reader: _Part, at: int, loops: Sequence[Loop], used: Sequence[Sequence[PrimVar]], text: str
) -> Loop:
    """The outermost loop of one axis of the result."""
    block = reader.result
    if not 0 <= at < len(block.axes):
        raise ScheduleError(f"{text}: at: no axis {at}; expected one of {_axes(block)}")
    if block.axes[at].reduces:
        raise ScheduleError(f"{text}: at: axis {at} is {_reduced(block, block.axes[at])}")
    for loop in loops:
        if any(v.same_as(block.sch.get(loop).loop_var) for v in used[at]):
            return loop
    raise ScheduleError(f"{text}: at: axis {at} of {reader.name} has no loop of its own any more")


def _reduced(block: Facts, axis: Axis) -> str:
    return (
        f"{_plain(axis)}, which {block.name} reduces: each result would compute all of it again; "
        f"expected one of {_axes(block)}"
    )


def _axes(block: Facts) -> str:
    """The axes of the result, as `0 (i), 1 (j)`."""
    return ", ".join(f"{axis.position} ({_plain(axis)})" for axis in block.spatial)


def _plain(axis: Axis) -> str:
    return str(axis.var.name).removeprefix("v_")


def _check_readers(made: _Part, reader: _Part, loop: Loop, text: str) -> None:
    """All that read the producer do so under the loop, and the consumer's op is among what is."""
    sch, at = made.result.sch, made.result.sch.get(loop)
    own = {block.name for block in reader.blocks}
    readers = made.result.consumers
    outside = [
        block.name
        for block in readers
        if not any(sch.get(above).same_as(at) for above in sch.get_loops(block.block))
    ]
    names = [block.name for block in readers]
    if not own & set(names) and len(outside) == len(readers):
        raise ScheduleError(f"{text}: {reader.name} does not read it; {names} do")
    if outside:
        raise ScheduleError(f"{text}: {outside} read it outside of the loop; melt them first")


def _said(err: Exception) -> str:
    """What TVM says of a primitive that cannot be, without the function that it shows and without
    the definitions of its words.
    """
    _, _, reason = str(err).rpartition("Error message:")
    return " ".join(reason.partition("Definition of")[0].split())
