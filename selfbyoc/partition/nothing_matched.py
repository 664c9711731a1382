"""What a user reads where no composite matched anything."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sized

from ..errors import MatchWarning
from .report import MISSED, REFUSED, Record, Report

_NAMED = 3


def warn_of_nothing(report: Report, refused: Sized, stacklevel: int) -> None:
    """A MatchWarning where composites were asked about ops, and none matched. Those that a guard
    `refused` did.
    """
    if report.matched or refused or not report.ops or not report.composites:
        return
    names = [composite.name for composite in report.composites]
    text = (
        f"nothing matched: none of {len(names)} composite{'s' * (len(names) > 1)} "
        f"({_some(names)}) in a model of {_some(report.left)}{_nearest(report)}; "
        f"print(selfbyoc.explain(mod, composites=...)) says why of each op"
    )
    warnings.warn(MatchWarning(text), stacklevel=stacklevel + 1)


def _some(names: Iterable[str]) -> str:
    known = list(names)
    return ", ".join([*known[:_NAMED], *(["..."] if len(known) > _NAMED else [])])


def _nearest(report: Report) -> str:
    """What fitted in most ops; a refusal stands for a whole match."""
    found = [r for r in report.records if r.status in (MISSED, REFUSED) and r.reason]
    if not found:
        return ", which no pattern ends in"
    best = max(found, key=_fitted)
    return f"; nearest: {best.composite} {best.status} {best.reason}"


def _fitted(record: Record) -> tuple[bool, int]:
    return record.status == REFUSED, record.fitted
