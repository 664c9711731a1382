"""The searches that a run begins with: one for each kernel that there is something to find for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from ..codegen.records.record import read
from ..codegen.records.workload import Variant
from ..errors import FallbackWarning, SelfbyocError, one_line
from ..language.known import is_builtin
from .search import DEFAULT, METASCHEDULE, OWN, Search
from .space import Space
from .tasks import Task


def searches(
    tasks: Sequence[Task], trials: int, space: str, seed: int, folder: Path, key: str
) -> list[Search]:
    """One search a task, with what is on record. Raises what a user's composite raises; a built-in
    one that does is not tuned.
    """
    known, found = read(folder), []
    for number, task in enumerate(tasks):
        default = _default(task)
        if default is None:
            continue
        own = space == "own" and task.has_space
        kind = METASCHEDULE if not own else OWN if default.choices else DEFAULT
        search = Search(task, kind, trials, Space(seed + number + len(known)), default, key)
        search.space.learn(default.choices)
        search.resume(known)
        found.append(search)
    return found


def _default(task: Task) -> Variant | None:
    """The kernel of a task as it is built; None where a build takes TVM's ops instead."""
    try:
        return task.variant()
    except SelfbyocError as err:
        if not is_builtin(task.composite):
            raise
        text = f"{task}: it is not tuned: {one_line(err)}"
        warnings.warn(FallbackWarning(text), stacklevel=4)
        return None
