"""The ops that joined a kernel, while it is stacked: those before an argument, and those after the
result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..graph import OpCall, Value
from ..tvm.types import Tensor, TeOperation
from .elementwise import Absorbed, absorbed, inlines, number, with_result
from .roles import Name

if TYPE_CHECKING:
    from ..language.match.match import Match
    from .tensors import Tensors


class Joined:
    """What a match holds besides what its pattern selected."""

    def __init__(self, match: Match) -> None:
        self.match = match
        self.last_before = {calls[-1]: name for name, calls in match.before.items()}
        self.inside = {c for calls in match.before.values() for c in calls}
        self.inside |= set(match.after)
        self.within: dict[OpCall, str] = {}  # an op -> the op whose blocks compute it
        self.instead: dict[Any, Any] = {}  # a te operation -> the one that took it in
        self.waiting: list[Absorbed] = []  # whether they become stages is not known yet

    def stacked(self, builder: Tensors, call: OpCall) -> bool:
        """Whether this op is one of them; of several the last one is computed with all of them."""
        if call in self.last_before:
            self._before(builder, self.last_before[call])
        elif self.match.after and call is self.match.after[-1]:
            self._after(builder)
        return call in self.inside

    def _before(self, builder: Tensors, name: str) -> None:
        calls = self.match.before[name]
        made = absorbed(f"composite {builder.composite.name}", calls, _known(builder, calls))
        (reader, *_) = builder.graph.users(made.value)
        self.within |= {call: reader.name for call in calls}
        self._take(builder, made)
        *inner, _ = calls
        # What the kernel's other ops read on the way, as a residual, each of them computes again.
        parts = [
            made.until(c) for c in inner if set(builder.graph.users(c.outputs[0])) - set(calls)
        ]
        for part in (*parts, made):
            is_staged = builder.composite.kernel is None
            builder.tensors[part.value] = part.stage() if is_staged else part
            self.waiting.append(part)

    def settle(self, builder: Tensors) -> None:
        """After a compute that may have made a stage of what was before its argument."""
        for made in list(self.waiting):
            stage, (*others, last) = made.staged, made.calls
            if stage is not None:
                self.waiting.remove(made)
                self.within |= {call: last.name for call in others}
                builder.tensors[made.value] = stage
                builder.stages[last].append(stage.op)
                builder.seen.add(stage.op)

    def _after(self, builder: Tensors) -> None:
        calls, (value,) = self.match.after, builder.match.outputs
        core, last = builder.tensors[value], calls[-1]
        known = _known(builder, calls)
        owner = f"composite {builder.composite.name}"
        chain, made = with_result(owner, (value, core), calls, known)
        self.within |= {call: last.name for call in calls}
        self._take(builder, chain)
        builder.tensors[chain.value] = made
        builder.stages[last].append(made.op)
        builder.seen.add(made.op)
        if inlines(core):
            self.instead[core.op] = made.op
            self.within[builder.match.root] = last.name

    def _take(self, builder: Tensors, made: Absorbed) -> None:
        """The stages that the ops need of their own, as a batch norm's factors."""
        for call, step in zip(made.calls, made.steps, strict=True):
            builder.own_stages(call, [step.tensor])

    def block_of(self, stage: TeOperation, names: Mapping[TeOperation, str]) -> Name | None:
        """The name of the block of a te operation, or of that which took it in."""
        stage = self.instead.get(stage, stage)
        return Name(names[stage]) if stage in names else None


def _known(builder: Tensors, calls: Sequence[OpCall]) -> dict[Value, Tensor]:
    """What the ops read that is computed already."""
    inside = {v for call in calls for v in call.outputs}
    inside |= set(builder.match.outputs)
    values = {v: v for call in calls for v in call.inputs if v not in inside}
    return {
        key: builder.tensor(value) if value.scalar is None else number(value)
        for key, value in values.items()
    }
