"""A kernel as something to tune: its key, and what it becomes under other decisions.

Extraction of tasks and look-up of records both go through here, so that they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...common.threads import core_count
from ...language.decisions import Choice, deciding
from ...tvm import GENERATION, target_dict
from ...tvm.types import Attr, PrimFunc, Target
from ..apply import Scheduled
from ..attributes import PACKED
from ..cache.keys import digest, graph_data, of_code
from ..external import NOT_OWN, External, match_of, packed_params, takes_plain_ops
from ..pack import described, pack_constants, packed_types
from ..schedule import schedule_external, stacked_as
from ..target import decisive
from ..tuning_record import TUNED, Tuned, told_by
from .record import Place


def workload_key(source: External) -> str:
    """Equal for kernels of one composite, one graph and the same packed arguments.

    How these are packed does not count: decisions may change it.
    """
    packed = sorted(packed_params(source))
    return digest(["workload", *source.composites, graph_data(source.graph), packed])


def place_of(target: Target) -> Place:
    """Where a record of a kernel for this target holds."""
    count = int(target.attrs.get("num-cores") or 0) or core_count()
    return Place(GENERATION, decisive(target_dict(target)), count)


def about(source: External) -> str:
    """`dense_chain: float32[7, 33], ... -> float32[7, 9]`, for people."""
    ins, outs = (
        ", ".join(v.type for v in values) for values in (source.graph.inputs, source.graph.outputs)
    )
    names = ", ".join(name.removeprefix("tefuse.") for name in source.composites)
    return f"{names}: {ins} -> {outs}"


def with_tuned(source: External, target: Target, tuned: Tuned | None) -> External:
    """The external function that is told these decisions; its weights may be packed otherwise."""
    attrs = {n: v for n, v in source.attrs.items() if n not in (TUNED, NOT_OWN, PACKED)}
    if tuned is not None:
        attrs[TUNED] = tuned.attr()
    return replace(source, attrs={**attrs, **packing(source, target, tuned)})


def packing(source: External, target: Target, tuned: Tuned | None) -> dict[str, Attr]:
    """The attribute that says how the packed parameters are packed under these decisions."""
    packed, match = packed_params(source), match_of(source)
    if not packed or takes_plain_ops(match.composite, target, tuned):
        return {}
    with target, told_by(tuned):  # the schedule asks later
        types = packed_types(source.graph, match, {i: p.arg for i, p in packed.items()})
    return {PACKED: described(types)}


def arguments(source: External, target: Target, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The graph's inputs as the kernel takes them: some packed, as it is told."""
    tuned, positions = Tuned.of(source.attrs), packed_params(source)
    with target, told_by(tuned):
        packed = pack_constants(source.graph, match_of(source), {i: inputs[i] for i in positions})
    return [packed.get(i, array) for i, array in enumerate(inputs)]


@dataclass(frozen=True)
class Variant:
    """A kernel under some decisions, scheduled and not compiled."""

    source: External
    scheduled: Scheduled
    choices: Mapping[str, Choice]  # all that its pack, compute and schedule asked for, by name

    @property
    def func(self) -> PrimFunc:
        """The scheduled PrimFunc."""
        return self.scheduled.mod["main"]

    @property
    def code(self) -> str:
        """What its machine code comes from, as a digest."""
        return of_code(self.func)


def variant(source: External, target: Target, tuned: Tuned | None) -> Variant:
    """Schedule a kernel under these decisions (None: the defaults).

    Raises DecisionError where they do not fit, and what the composite's functions raise.
    """
    tuned = tuned or Tuned()
    with deciding(tuned.decisions) as asked:
        told = with_tuned(source, target, tuned)
        _, scheduled = schedule_external(told, target)
    asked.check_all_asked()
    return Variant(told, scheduled, asked.made)


def stacked(source: External, target: Target) -> PrimFunc:
    """The kernel's function before any schedule: what a trace begins with."""
    told = Tuned(trace=())
    source = with_tuned(source, target, told)
    with target, told_by(told):
        made = stacked_as(source, target, told)
    return made.func.with_attr("global_symbol", "main")
