"""`load`: a file as a library that can be called; TVM's Python package only where it has to be."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common import cpu_features
from ..common.files import expanded
from ..common.generation import GENERATION
from ..common.lazily import deferred
from ..errors import TargetError, one_line
from .library import Library, check_library
from .native import native_module, stamp
from .note import Note, read_note, report_data

if TYPE_CHECKING:
    from ..partition.report import Report


def load(path: str | Path, like: Library | None = None) -> Library:
    """A library that `export_library` wrote, which can be called at once. `like` gives the inputs
    and outputs of a file that does not say them: another tool's.

    Raises, before any of its code is loaded: DamagedFile if it was cut off or holds other bytes,
    TargetError if it is for another CPU or generation of TVM, InputError if it is no library.
    """
    path = expanded(path)
    if like is not None:
        check_library(like, "like")
    note, now = read_note(path), stamp(path)
    _check_generation(path, note)
    _check_runs(path, note)
    if note.python:
        from ..tvm import tvm  # noqa: F401 (the functions that it calls)
    native = native_module(path, now)
    known = note if like is None else like
    return Library(
        native, known.inputs, outputs=known.outputs, versions=note.versions,
        report=deferred(partial(report_of, path, note)),
        target=deferred(partial(target_of, path, note)),
        weights=note.weights, index_bounds=note.index_bounds,
        index_places=note.index_places, sizes=note.sizes,
        least_sizes=note.least_sizes, bounded_by=note.bounded_by, memory=note.memory, file=path,
        _stamp=now,
    )  # fmt: skip


def _check_generation(path: Path, note: Note) -> None:
    built_by = note.versions.get("generation", GENERATION)
    if built_by != GENERATION:
        from ..tvm import tvm

        raise TargetError(
            f"{path}: built by TVM {note.versions.get('tvm')} ({built_by}), which TVM "
            f"{tvm.__version__} ({GENERATION}) cannot load; build it again with this one"
        )


def _check_runs(path: Path, note: Note) -> None:
    """TargetError where this machine lacks what the code needs. LLVM is asked where the note and
    the system do not say enough.
    """
    if note.target is None:
        return
    is_told = note.target.get("kind") == "llvm" and note.features is not None
    if not is_told or not cpu_features.surely_has(note.architecture, note.features or ()):
        from ..machine import host

        host.check_runs(target_of(path, note), str(path))


def target_of(path: Path, note: Note) -> Any:
    """The Target of a note. Raises TargetError for what is none."""
    from ..ir import declare  # noqa: F401 (it imports TVM, which knows our ops from then on)
    from ..tvm import make_target

    if note.target is None:
        return None
    try:
        return make_target(note.target)
    except Exception as err:  # TVM raises plain errors of many kinds for what is no target
        raise TargetError(f"{path}: its note cannot be read: {one_line(err)}") from err


def report_of(path: Path, note: Note) -> Report | None:
    """The report of a note. Raises TargetError for what is none."""
    from ..ir import declare  # noqa: F401 (it imports TVM, which knows our ops from then on)
    from ..partition.report import Report

    if note.report is None:
        return None
    try:
        return Report.from_data(report_data(note))
    except ValueError as err:
        raise TargetError(f"{path}: its note cannot be read: {one_line(err)}") from err
