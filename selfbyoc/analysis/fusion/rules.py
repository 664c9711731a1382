"""Which rule of TVM's fusion a composite breaks, read from what FuseOps makes of its ops.

The rules are those of TVM's report (OSDI 2018, 3) and of `src/relay/analysis/graph_partitioner.cc`:
elementwise ops follow a complex op, injective ops join each other, a reduction takes injective ops
before it; nothing else joins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.emit import emit
from ...language.case import Case
from ...language.composite import Composite
from ...tvm import GENERATION
from ...tvm.types import IRModule
from .generation import road
from .kernels import Fused, FusedOp

# From what can be joined with everything to what can be joined with nothing.
_ORDER = (
    "elemwise", "broadcast", "tuple", "injective", "comm_reduce", "out_elemwise_fusable", "opaque",
)  # fmt: skip

OPAQUE = "an opaque op is joined with nothing"
TWO_COMPLEX = "two complex ops are never one kernel"
BEFORE_COMPLEX = "nothing is joined before a complex op"
AFTER_COMPLEX = "only elementwise ops are joined after a complex op"
AFTER_REDUCTION = "nothing is joined after a reduction"
OTHER_READER = "their kinds would do, but the value has a reader in another kernel"


@dataclass(frozen=True)
class Broken:
    """Two neighbouring ops that TVM did not join, and the rule. `heaviest` is the op of the
    producer's kernel whose kind decides.
    """

    producer: FusedOp
    heaviest: FusedOp
    consumer: FusedOp
    rule: str

    def __str__(self) -> str:
        last = "" if self.heaviest is self.producer else f" ... {self.producer.name}"
        return f"{self.heaviest}{last}, then {self.consumer}: {self.rule}"


@dataclass(frozen=True)
class Fusion:
    """What TVM's fusion makes of a composite's ops; one example of each rule that it breaks."""

    composite: str
    case: str
    kernels: int
    broken: tuple[Broken, ...]


def rule_of(before: str, consumer: str) -> str:
    """Why an op of kind `consumer` does not join a kernel whose heaviest op is of kind `before`."""
    if "opaque" in (before, consumer):
        return OPAQUE
    if consumer == "out_elemwise_fusable":
        return TWO_COMPLEX if before == consumer else BEFORE_COMPLEX
    if before == "comm_reduce":
        return AFTER_REDUCTION
    if before == "out_elemwise_fusable" and consumer not in ("elemwise", "broadcast"):
        return AFTER_COMPLEX
    return OTHER_READER


def tvms_fusion(composite: Composite) -> Fusion | None:
    """FuseOps on the composite's first case, of those with constant weights if there are such;
    None where no case exists on this generation.
    """
    cases = [c for c in composite.cases if GENERATION in c.generations]
    if not cases:
        return None
    case = next((c for c in cases if c.constants), cases[0])
    fused = road.read(road.fuse(model_of(composite, case)))
    return Fusion(composite.name, case.name, fused.kernels, broken(fused))


def model_of(composite: Composite, case: Case) -> IRModule:
    """The case as an IRModule; the values of its constants do not matter here."""
    rng = np.random.default_rng(0)
    weights = {n: rng.integers(1, 9, case.args[n][0]) for n in case.constants}
    constants = {n: array.astype(case.args[n][1]) for n, array in weights.items()}
    return emit(case.program or composite.pattern, case.args, constants)


def broken(fused: Fused) -> tuple[Broken, ...]:
    """One pair for each rule, those of the heaviest ops first."""
    found: dict[str, Broken] = {}
    for producer, consumer in fused.apart:
        kernel = fused.of(producer.kernel)[::-1]
        heaviest = max([producer, *kernel], key=lambda op: _ORDER.index(op.kind))
        rule = rule_of(heaviest.kind, consumer.kind)
        found.setdefault(rule, Broken(producer, heaviest, consumer, rule))
    order = (OPAQUE, TWO_COMPLEX, AFTER_COMPLEX, AFTER_REDUCTION, BEFORE_COMPLEX, OTHER_READER)
    return tuple(found[rule] for rule in order if rule in found)
