"""Tuning tasks: the distinct kernels of a partitioned module, found without compiling anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..analysis.kernels import Kernel, kernels
from ..analysis.verify.inputs import arrays
from ..codegen.external import NOT_OWN, TARGET, External, match_of
from ..codegen.info.pattern_kind import only_moves
from ..codegen.records.record import Place
from ..codegen.records.workload import Variant, about, place_of, variant, workload_key
from ..codegen.symbolic.ranges import representatives
from ..codegen.target import host_target
from ..codegen.tuning_record import TUNED, TUNED_AT, Tuned
from ..errors import InputError
from ..graph import sizes_text
from ..language.composite import Composite
from ..partition import check_module, check_target, is_partitioned
from ..tvm import make_target
from ..tvm.types import IRModule, Target


@dataclass(frozen=True, eq=False)
class Task:
    """One distinct kernel: what is tuned, for which target, and how often the model calls it.

    key     equal for the same composite, ops and shapes; records are found by it
    weight  calls in one run of the model
    roots   the root ops of its matches, by their names in the report
    sizes   of a kernel of symbolic sizes: those that stand for a range
    """

    key: str
    source: External
    target: Target
    weight: int
    roots: tuple[str, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def composite(self) -> Composite:
        """What it was matched by."""
        return match_of(self.source).composite

    @property
    def ops(self) -> tuple[str, ...]:
        """The kinds of its ops, in order."""
        return tuple(call.kind for call in self.source.graph.ops if call.sources)

    @property
    def is_simple(self) -> bool:
        """Whether it holds no ops but elementwise ones and those that move data."""
        return all(only_moves(kind) for kind in self.ops)

    @property
    def place(self) -> Place:
        """Where its records hold."""
        return place_of(self.target)

    @property
    def has_space(self) -> bool:
        """Whether the composite has a schedule of its own for the target: it is the search space.
        Otherwise the space is MetaSchedule's.
        """
        return self.composite.schedule_for(str(self.target.kind)) is not None

    def variant(self, tuned: Tuned | None = None) -> Variant:
        """The kernel under these decisions, scheduled; None: under the defaults.

        Raises DecisionError where they do not fit.
        """
        return variant(self.source, self.target, tuned)

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """Seeded random inputs of the graph, weights unpacked."""
        return arrays(self.source.graph, {}, "random", seed)

    def __str__(self) -> str:
        at = f" ({sizes_text(self.sizes)})" if self.sizes else ""
        return about(self.source) + at

    def __repr__(self) -> str:
        return f"Task({self}, weight {self.weight})"


def extract_tasks(
    mod: IRModule,
    target: Target | None = None,
    *,
    include_simple_tasks: bool = False,
    min_ops: int = 1,
) -> list[Task]:
    """The tuning tasks of a module that `partition_for_tefuse` made, in the order of its report.

    target                used where partitioning was given none; None: this machine's CPU
    include_simple_tasks  also kernels of elementwise and data-moving ops alone
    min_ops               only kernels of so many ops at least

    Nothing is scheduled or compiled. The module is not changed; equal kernels are one task, with
    the number of their calls as its weight. A kernel of symbolic sizes has a task for each range of
    sizes, tuned at one of them: 1, to 8, to 32, to 128 and above. Raises InputError for a module
    that is not partitioned.
    """
    check_module(mod)
    if not is_partitioned(mod):
        raise InputError("mod: expected a module partitioned by partition_for_tefuse")
    if not isinstance(min_ops, int) or min_ops < 1:
        raise InputError(f"min_ops: expected a number from 1 on, found {min_ops!r}")
    given = host_target() if target is None else check_target(target)
    found: dict[tuple[str, str], Task] = {}
    for task in (t for kernel in kernels(mod) for t in _tasks(kernel, given)):
        place = (task.key, str(task.place))
        known = found.get(place)
        found[place] = task if known is None else _both(known, task)
    kept = [t for t in found.values() if len(t.ops) >= min_ops]
    return [t for t in kept if include_simple_tasks or not t.is_simple]


def _tasks(kernel: Kernel, target: Target) -> Iterator[Task]:
    """One task, or one for each range of its symbolic sizes."""
    told = kernel.source.attrs.get(TARGET)
    bare = {n: v for n, v in kernel.source.attrs.items() if n not in (TUNED, TUNED_AT, NOT_OWN)}
    source = replace(kernel.source, attrs=bare)
    target = target if told is None else make_target(told)
    ranges = representatives(source) if source.symbols else [{}]
    for sizes in ranges:
        sized = source.at(sizes) if sizes else source
        weight = max(1, len(kernel.calls))
        yield Task(workload_key(sized), sized, target, weight, kernel.roots, sizes)


def _both(one: Task, other: Task) -> Task:
    return replace(one, weight=one.weight + other.weight, roots=one.roots + other.roots)
