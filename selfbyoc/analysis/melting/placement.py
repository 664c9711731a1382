"""Where each producer sits: the loops that an intermediate's writer and readers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from ...errors import InputError
from .allocations import Allocation
from .loop_nest import Loop, Nest, Stage, under


@dataclass(frozen=True)
class Placement:
    """One intermediate buffer between the stage that writes it and those that read it."""

    buffer: Allocation
    producer: Stage
    consumers: tuple[Stage, ...]
    loops: tuple[Loop, ...]  # that all of them share, outermost first, unit loops left out
    travels: bool
    prepares: bool = False  # a padded or packed copy of an op's input: no value between ops

    @property
    def depth(self) -> int:
        """Shared loops: the deeper, the sooner a value is read after it was computed."""
        return len(self.loops)

    @property
    def traffic(self) -> int:
        """Bytes written and read again, over all iterations of the loops around the buffer."""
        # Stages that multiply for one op are pieces of one sum: together they read all of it.
        readers = {s.op if s.products else s.name for s in self.consumers}
        return self.buffer.bytes * self.buffer.trips * (1 + len(readers))

    @property
    def in_registers(self) -> bool:
        """A tile that its own op stores right away."""
        return self.buffer.scope == "local"

    def __str__(self) -> str:
        if not self.loops:
            readers = ", ".join(stage.name for stage in self.consumers)
            return f"at the root, before {readers or 'nothing'}"
        inner = self.loops[-1]
        return f"in {inner}, depth {self.depth}"


def placements(nest: Nest, buffers: Sequence[Allocation], cache: int) -> tuple[Placement, ...]:
    """One for each intermediate buffer, in the order in which they are written."""
    by_name = {buffer.name: buffer for buffer in buffers}
    stages = list(under(nest.body))
    found: list[Placement] = []
    for stage, loops in stages:
        if stage.writes not in by_name or any(p.buffer.name == stage.writes for p in found):
            continue
        buffer = by_name[stage.writes]
        readers = [(s, above) for s, above in stages if buffer.name in s.reads and s is not stage]
        shared = _shared([loops, *(above for _, above in readers)])
        travels = buffer.bytes > cache or (not shared and buffer.scope != "local")
        given = not {name for name in stage.reads if any(s.writes == name for s, _ in stages)}
        copies = stage.role == "padded copy" or (stage.role == "copy" and given)
        prepares = copies and stage.name != stage.op  # not an op that itself moves data
        reading = tuple(s for s, _ in readers)
        found.append(Placement(buffer, stage, reading, shared, travels, prepares))
    return tuple(found)


def _shared(paths: Sequence[tuple[Loop, ...]]) -> tuple[Loop, ...]:
    """The loops that begin all paths, unit loops left out."""
    same = takewhile(lambda level: all(x is level[0] for x in level), zip(*paths, strict=False))
    return tuple(level[0] for level in same if level[0].extent > 1)


def is_melted(nest: Nest, ops: Sequence[str], producer: str, consumer: str) -> bool:
    """Whether the results of the two are computed under one loop of more than one iteration.

    Each may be a stage, or an op, whose last stage computes its result; what prepares its input,
    such as padding, may lie elsewhere. One of `ops` without a stage was inlined into its readers.
    """
    known = {name for stage in nest.stages for name in (stage.name, stage.op) if name}
    for name in (producer, consumer):
        if name not in known and name not in ops:
            raise InputError(f"no stage is {name!r}; there are {sorted(known)}")
    first = [above for stage, above in under(nest.body) if producer in (stage.op, stage.name)]
    last = [above for stage, above in under(nest.body) if consumer in (stage.op, stage.name)]
    return not first or (bool(last) and bool(_shared([first[-1], last[-1]])))
