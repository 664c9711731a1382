"""The steps of a model's loops in its report: their ops and decisions under the step's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .records import NO_OPS
from .refusal import Place, Refusal
from .report import Record, Report


def within(step: str, op: str) -> str:
    """An op of a step, as the report of the whole model calls it."""
    return op if op in NO_OPS else f"{step}/{op}"


def refused_within(
    step: str, refused: Mapping[Place, Refusal] | None
) -> dict[Place, Refusal] | None:
    """What is refused in a step, by the names that its own module has."""
    if refused is None:
        return None
    start = f"{step}/"
    return {
        (composite, root.removeprefix(start)): why
        for (composite, root), why in refused.items()
        if root.startswith(start)
    }


def with_steps_told(report: Report, steps: Mapping[str, Report]) -> Report:
    """A model's report, and those of its steps."""
    for step, inner in steps.items():
        report = _joined(report, step, inner)
    return report


def _joined(report: Report, step: str, inner: Report) -> Report:
    def name(op: str) -> str:
        return within(step, op)

    return replace(
        report,
        records=(*report.records, *(_record(step, each) for each in inner.records)),
        ops=(*report.ops, *((name(op), kind, by) for op, kind, by in inner.ops)),
        edges=(*report.edges, *((name(a), name(b)) for a, b in inner.edges)),
        absorbed=(*report.absorbed, *((name(a), k, name(b)) for a, k, b in inner.absorbed)),
        problems=(*report.problems, *inner.problems),
        costs=(*report.costs, *((name(op), size, work) for op, size, work in inner.costs)),
        origins=(*report.origins, *((name(op), was) for op, was in inner.origins)),
    )


def _record(step: str, record: Record) -> Record:
    return replace(
        record,
        root=within(step, record.root),
        ops=tuple(within(step, op) for op in record.ops),
        edges=tuple((within(step, a), within(step, b), ty) for a, b, ty in record.edges),
        args=tuple((arg, ty, within(step, of)) for arg, ty, of in record.args),
        reader=within(step, record.reader),
        owner_root=within(step, record.owner_root),
    )
