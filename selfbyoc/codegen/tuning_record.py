"""What tuning told a kernel: an attribute of the external function, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..language.decisions import deciding
from ..tvm.types import Attr, Attrs, Trace

TUNED = "tefuse.tuned"
TUNED_AT = "tefuse.tuned_at"  # of a kernel of symbolic sizes: the same for some sizes


@dataclass(frozen=True)
class Tuned:
    """Decisions by name, or a trace of MetaSchedule; and for reports, what they were worth."""

    decisions: Mapping[str, Any] = field(default_factory=dict)
    trace: Trace = None
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", _with_tuples(self.decisions))

    @classmethod
    def of(cls, attrs: Attrs) -> Tuned | None:
        """What the attributes of an external function say."""
        data = attrs.get(TUNED)
        return None if data is None else cls(**data)

    def attr(self) -> dict[str, Attr]:
        """As JSON data."""
        return dict(vars(self))


def _with_tuples(decisions: Attrs) -> dict[str, Attr]:
    """JSON has lists where there were tuples."""

    def tupled(value: Attr) -> Attr:
        return tuple(map(tupled, value)) if isinstance(value, (list, tuple)) else value

    return {name: tupled(value) for name, value in decisions.items()}


@contextmanager
def told_by(tuned: Tuned | None) -> Iterator[None]:
    """Pack, stack and schedule as tuning found best."""
    if tuned is None:
        yield
        return
    with deciding(tuned.decisions):
        yield
