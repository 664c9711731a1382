"""The ops that joined a kernel, while it is stacked: those before an argument, and those after the
result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..graph import OpCall
from .absorbed import Absorbed, inlines, number, with_result
from .roles import Name

if TYPE_CHECKING:
    from ..match.match import Match
    from .stack import Builder


class Joined:
    """What a match holds besides what its pattern selected."""

    def __init__(self, match: Match) -> None:
        self.match = match
        self.last_before = {id(calls[-1]): name for name, calls in match.before.items()}
        self.inside = {id(c) for calls in match.before.values() for c in calls}
        self.inside |= set(map(id, match.after))
        self.within: dict[int, str] = {}  # id of an op -> the op whose blocks compute it
        self.instead: dict[Any, Any] = {}  # a te operation -> the one that took it in
        self.waiting: list[Absorbed] = []  # whether they become stages is not known yet

    def stacked(self, builder: Builder, call: OpCall) -> bool:
        """Whether this op is one of them; of several the last one is computed with all of them."""
        if id(call) in self.last_before:
            self._before(builder, self.last_before[id(call)])
        elif self.match.after and call is self.match.after[-1]:
            self._after(builder)
        return id(call) in self.inside

    def _before(self, builder: Builder, name: str) -> None:
        calls = self.match.before[name]
        made = Absorbed(f"composite {builder.composite.name}", calls, _known(builder, calls))
        value = made.value
        (reader, *_) = builder.graph.users(value)
        self.within |= {id(call): reader.name for call in calls}
        self._take(builder, made)
        if builder.composite.kernel is None:
            builder.tensors[id(value)] = made.stage()
        else:
            builder.tensors[id(value)] = made
        self.waiting.append(made)

    def settle(self, builder: Builder) -> None:
        """After a compute that may have made a stage of what was before its argument."""
        for made in list(self.waiting):
            stage, (*others, last) = made.staged, made.calls
            if stage is not None:
                self.waiting.remove(made)
                self.within |= {id(call): last.name for call in others}
                builder.tensors[id(made.value)] = stage
                builder.stages[id(last)].append(stage.op)
                builder.seen.add(stage.op)

    def _after(self, builder: Builder) -> None:
        calls, (value,) = self.match.after, builder.match.outputs
        core, last = builder.tensors[id(value)], calls[-1]
        known = _known(builder, calls)
        owner = f"composite {builder.composite.name}"
        chain, made = with_result(owner, (value, core), calls, known)
        self.within |= {id(call): last.name for call in calls}
        self._take(builder, chain)
        builder.tensors[id(chain.value)] = made
        builder.stages[id(last)].append(made.op)
        builder.seen.add(made.op)
        if inlines(core):
            self.instead[core.op] = made.op
            self.within[id(builder.match.root)] = last.name

    def _take(self, builder: Builder, made: Absorbed) -> None:
        """The stages that the ops need of their own, as a batch norm's factors."""
        for call, step in zip(made.calls, made.steps, strict=True):
            builder.own_stages(call, [step.tensor])

    def block_of(self, stage: Any, names: Mapping[Any, str]) -> Name | None:
        """The name of the block of a te operation, or of that which took it in."""
        stage = self.instead.get(stage, stage)
        return Name(names[stage]) if stage in names else None


def _known(builder: Builder, calls: Sequence[OpCall]) -> dict[int, Any]:
    """What the ops read that is computed already."""
    inside = {id(v) for call in calls for v in call.outputs}
    inside |= {id(v) for v in builder.match.outputs}
    values = {id(v): v for call in calls for v in call.inputs if id(v) not in inside}
    return {
        key: builder.tensor(value) if value.scalar is None else number(value)
        for key, value in values.items()
    }
