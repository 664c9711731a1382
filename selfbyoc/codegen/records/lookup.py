"""Records in force: within `apply_records`, partitioning and building take what tuning found."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import DecisionError, InputError, RecordWarning, SelfbyocError
from ...graph import sizes_text
from ...tvm.types import Target
from ..attributes import PACKED
from ..external import External
from ..symbolic.ranges import representatives
from ..tuning_record import TUNED, TUNED_AT, Tuned
from .record import Record, best, read
from .workload import about, packing, place_of, variant, with_tuned, workload_key


@dataclass
class Applied:
    """What became of the records of one `apply_records`: by workload key, for people.

    places   the folders and files
    records  all that were read, those of a kernel in a list
    used     what was taken, and why
    refused  why a record that there is was not taken
    """

    places: tuple[str, ...]
    records: dict[str, list[Record]]
    used: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def unused(self) -> list[Record]:
        """One record of each kernel that nothing asked for."""
        asked = {*self.used, *self.refused}
        return [records[0] for key, records in self.records.items() if key not in asked]

    def __str__(self) -> str:
        counts = (len(self.used), len(self.refused), len(self.unused))
        return "{} kernels by records, {} refused, {} unused".format(*counts)


_in_force: ContextVar[Applied | None] = ContextVar("selfbyoc_records", default=None)
ENVIRONMENT = "SELFBYOC_RECORDS"  # folders or files, for builds that know nothing of records


def in_force() -> Applied | None:
    """The records of the innermost `apply_records`, or else the environment's."""
    named = os.environ.get(ENVIRONMENT, "")
    return _in_force.get() or (_of_environment(named) if named else None)


@cache
def _of_environment(named: str) -> Applied:
    return _applied(named.split(os.pathsep))


def _applied(places: Sequence[str | Path]) -> Applied:
    found: dict[str, list[Record]] = {}
    for place in places:
        for record in read(place):
            found.setdefault(record.workload, []).append(record)
    return Applied(tuple(map(str, places)), found)


@contextmanager
def apply_records(*places: str | Path) -> Iterator[Applied]:
    """Build with the records of these folders or files: `with selfbyoc.apply_records("records"):`.

    Inside, `partition_for_tefuse`, `build`, `relay.build` and `RunCodegen` take the tuned schedule
    of a kernel where there is a record that fits, and otherwise what they take anyway; reports say
    which. A RecordWarning names what cannot be read, does not fit (and why), or was not used. In a
    nested one only the inner records are in force. Raises InputError for a path that is not there.

    Outside, the environment's SELFBYOC_RECORDS does the same for a whole process.
    """
    if not places:
        raise InputError("apply_records: expected a folder or a file of records, found none")
    applied = _applied(places)
    token = _in_force.set(applied)
    try:
        yield applied
    finally:
        _in_force.reset(token)
    _warn_unused(applied)


def _warn_unused(applied: Applied) -> None:
    if unused := applied.unused:
        names = "; ".join(str(r) for r in unused[:3])
        more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
        text = f"records of {', '.join(applied.places)} were not used: {names}{more}"
        warnings.warn(RecordWarning(text), stacklevel=4)


def with_record(source: External, target: Target | None, *, packed: bool) -> External:
    """The external function, told what the record in force for it found, if there is one.

    `packed`: its weights are packed already, so that a record which packs them otherwise is too
    late.
    """
    applied = in_force()
    if applied is None or target is None or TUNED in source.attrs or len(source.composites) != 1:
        return source
    if source.symbols:
        return _with_ranges(applied, source, target)
    key = workload_key(source)
    if key not in applied.records or (packed and key in applied.refused):
        return source
    try:
        told = _fitting(applied.records[key], source, target, packed)
    except SelfbyocError as err:  # it does not fit, or its kernel raises, as it would without
        _refuse(applied, key, f"{about(source)}: its record is not used: {err}")
        return source
    applied.used[key] = told.reason
    applied.refused.pop(key, None)
    return with_tuned(source, target, told)


def _with_ranges(applied: Applied, source: External, target: Target) -> External:
    """The external function of symbolic sizes, told what the records of its ranges found."""
    found: dict[str, Any] = {}
    for sizes in representatives(source):
        sized = source.at(sizes)
        key = workload_key(sized)
        if key not in applied.records:
            continue
        try:
            told = _fitting_all_sizes(applied.records[key], sized, target)
        except SelfbyocError as err:
            _refuse(applied, key, f"{about(sized)}: its record is not used: {err}")
            continue
        applied.used[key] = told.reason
        applied.refused.pop(key, None)
        found[sizes_text(sizes)] = told.attr()
    return replace(source, attrs={**source.attrs, TUNED_AT: found}) if found else source


def _fitting_all_sizes(records: Sequence[Record], source: External, target: Target) -> Tuned:
    """The same for a range of a symbolic size, whose weights are packed once for all sizes."""
    told = _fitting(records, source, target, packed=False)
    if told.trace is not None:
        raise DecisionError("a trace of MetaSchedule is of one size")
    if packing(source, target, told).get(PACKED) != source.attrs.get(PACKED):
        raise DecisionError("it packs weights otherwise than they are for every size")
    return told


def bar(source: External) -> bool:
    """Do not use this kernel's records any more; False if it took none in this context."""
    if source.symbols:
        return any([_bar(source.at(sizes)) for sizes in representatives(source)])
    return _bar(source)


def _bar(source: External) -> bool:
    applied, key = in_force(), workload_key(source)
    if applied is None or key not in applied.used:
        return False
    applied.refused[key] = "verification found it wrong"
    del applied.used[key]
    applied.records.pop(key)
    return True


def _refuse(applied: Applied, key: str, why: str) -> None:
    if applied.refused.get(key) != why:
        warnings.warn(RecordWarning(why), stacklevel=4)
    applied.refused[key] = why


def _fitting(records: Sequence[Record], source: External, target: Target, packed: bool) -> Tuned:
    """The best record of this place, as something to tell; DecisionError says why there is none."""
    place = place_of(target)
    here = [r for r in records if r.place == place]
    if not here:
        known = " and ".join(sorted({str(r.place) for r in records}))
        raise DecisionError(f"there are records for {known}, and this is {place}")
    record = best(here)
    if record is None:
        raise DecisionError(f"none of the {len(here)} candidates could be used")
    told = Tuned(record.decisions, record.trace, _reason(record, len(here)))
    if packed and packing(source, target, told) != packing(source, target, None):
        raise DecisionError("the weights are packed already: partition within apply_records")
    made = variant(source, target, told)
    if made.code != record.code:
        by = ", ".join(f"{n} {v}" for n, v in record.made_by.items())
        raise DecisionError(f"its kernel has changed since it was measured ({by})")
    return told


def _reason(record: Record, candidates: int) -> str:
    """For reports: what it is worth."""
    assert record.seconds is not None
    assert record.default_seconds is not None
    hand, of = 1e3 * record.default_seconds, f"of {candidates} candidates"
    if record.is_default and record.error:
        return f"the default decisions: {record.error}"
    if record.is_default:
        return f"the default decisions are the best {of}: {hand:.4g} ms"
    found = 1e3 * record.seconds
    return f"the best {of}: {found:.4g} ms, where the default decisions take {hand:.4g} ms"
