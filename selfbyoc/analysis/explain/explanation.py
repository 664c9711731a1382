"""`selfbyoc.explain`: for every composite and every candidate root, what was decided and why.

All of it comes from the code that decides: the records of partitioning, and `level_of`. Nothing is
found out here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...codegen.target import host_target, short_text
from ...common import structured
from ...errors import InputError
from ...language.known import Composites, registry_of
from ...partition import check_module, check_target, decide_on, is_partitioned
from ...partition.report import MATCHED, Record, Report, report
from ...tvm import tvm
from ...tvm.types import NDArray, Target
from .answers import Answer, answer, resolve
from .grouping import left, levels, nearly
from .level import Leveler, levels_of_kernels, levels_of_matches


@dataclass(frozen=True)
class Explanation:
    """Every decision about a module, for one target. `print` it for the short form."""

    report: Report
    target: str

    @property
    def records(self) -> tuple[Record, ...]:
        """One for every composite and every op that its pattern could end in."""
        return self.report.records

    def of(self, composite: str) -> tuple[Record, ...]:
        """The decisions about one composite."""
        known = [c.name for c in self.report.composites]
        if composite not in known:
            raise InputError(f"composite {composite!r} was not asked; known: {known}")
        return tuple(r for r in self.records if r.composite == composite)

    def resolve(self, op: str) -> tuple[str, str]:
        """The op's name here, where the model as it was written has another; and a note on that."""
        return resolve(self.report, op)

    @property
    def sizes(self) -> str:
        """At which sizes of symbols figures are, in words; empty where none is symbolic."""
        return f"bytes, operations and plans are at {self.report.at}" if self.report.at else ""

    def why_not(self, root: str) -> tuple[Record, ...]:
        """The decisions against a root op."""
        name, _ = self.resolve(root)
        return tuple(self.report.why_not(name))

    def why(self, op_a: str, op_b: str) -> Answer:
        """Whether two ops are in one kernel, and why or why not."""
        return answer(self.report, op_a, op_b)

    def to_json(self) -> str:
        """As JSON; `from_json` is the inverse."""
        return json.dumps({"target": self.target, **self.report.data()})

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """Read what `to_json` wrote. Raises InputError that names the field."""
        try:
            data = structured.checked(dict[str, Any], structured.loads(text), "")
            target = structured.checked(str, data.pop("target", None), "target")
            return cls(Report.from_data(data), target)
        except ValueError as err:
            raise InputError(f"this is not what to_json wrote: {err}") from err

    def __str__(self) -> str:
        lines = [f"Kernels, for {self.target}"]
        lines += [f"  {g.count} x {g.composite}, {g.reason}" for g in levels(self.report)]
        lines.append("Nearly")
        lines += [f"  {g}" for g in nearly(self.report)]
        lines.append("Left to TVM")
        lines += [f"  {row.count} x {row.kind}, {row.cost}: {row.why}" for row in left(self.report)]
        if self.report.layouts:
            lines.append(f"Layouts: {self.report.layouts}")
        lines += [f"Sizes: {self.sizes}"] if self.sizes else []
        return "\n".join([*lines, *(f"Not explained: {p}" for p in self.report.problems)])


def explain(
    mod: tvm.IRModule,
    params: Mapping[str, NDArray] | None = None,
    target: Target | None = None,
    composites: Composites = None,
) -> Explanation:
    """What matches in a module, what nearly does, and why not. Nothing is built or changed.

    mod         partitioned: what was decided; else what partition_for_tefuse would decide
    params      weights by name, as for partition_for_tefuse
    target      decides which schedules there are; None: the host's CPU
    composites  as for partition_for_tefuse; none for a partitioned module

    Raises InputError and TargetError. What did not match is a record, and no error.
    """
    check_module(mod)
    target = host_target() if target is None else check_target(target)
    if is_partitioned(mod):
        if composites is not None:
            raise InputError(
                "composites: this module is partitioned already; give explain the module as it "
                "was before"
            )
        return _with_levels(report(mod), target, levels_of_kernels(mod, target))
    registry = registry_of(composites)
    _, matches, decided = decide_on(mod, params, registry, target=target, strict=False)
    level = levels_of_matches(registry, matches, target)
    return _with_levels(decided, target, level)


def _with_levels(decided: Report, target: Target, level: Leveler) -> Explanation:
    """The report with the level of each match; what cannot be found out is said, not raised."""
    records, problems = [], list(decided.problems)
    for record in decided.records:
        if record.status == MATCHED:
            try:
                found = level(record)
                record = replace(
                    record, level=found.name, level_reason=found.reason, plan=found.plan
                )
            except Exception as err:  # of a plan or a schedule: a report must not end by it
                problems.append(f"level of {record.composite} at {record.root}: {err}")
        records.append(record)
    done = replace(decided, records=tuple(records), problems=tuple(problems))
    return Explanation(done, short_text(target))
