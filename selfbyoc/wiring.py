"""What upper floors hand down to lower ones, so that no import runs up.

`selfbyoc/__init__.py` fills it in once, when the package is imported. A lower floor asks `wired` at
the time of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


def _missing(*_: Any, **__: Any) -> Any:
    raise AssertionError("selfbyoc/__init__.py has not wired the package")


@dataclass
class Wiring:
    """The handed-down parts.

    builtin           the built-in composites, in order of priority        (schedules)
    default_schedule  the schedule of a function whose composite has none  (schedules)
    with_record       a kernel with its tuning record, if one is in force  (tuning)
    bar_record        drop a kernel's tuning record for this context       (tuning)
    verified          a module partitioned into verified kernels only      (analysis)
    """

    builtin: Sequence[Any] = ()
    default_schedule: Callable[..., str] = _missing
    with_record: Callable[..., Any] = _missing
    bar_record: Callable[..., bool] = _missing
    verified: Callable[..., Any] = _missing


wired = Wiring()
