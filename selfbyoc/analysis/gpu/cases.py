"""The cases of a composite as kernels of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...tir.lowering import finished
from ...tvm.types import Target
from ..bounds.bounds import Plan, of_case
from .lowered import Lowered, lowered

if TYPE_CHECKING:
    from ...language.case import Case
    from ...language.composite import Composite


@dataclass(frozen=True)
class Made:
    """A case's kernel, and by which schedule it was made."""

    composite: str
    case: str
    level: str
    lowered: Lowered


def made(composite: Composite, case: Case, target: Target) -> Iterator[Made]:
    """The kernels of a case, one unless the composite's checks refuse it."""
    for subject in of_case(composite, case, Plan(target), case.constants):
        _, scheduled = subject.kernel.schedule(target)
        func = finished(scheduled.mod["main"], target)
        yield Made(composite.name, case.name, scheduled.level.name, lowered(func, target))
