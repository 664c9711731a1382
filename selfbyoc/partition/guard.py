"""A guard: whoever may leave matches out of a partitioning, after seeing all of it.

The road does not know why. `analysis/guard.py` has one that measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from ..errors import InputError
from .marked import Partitioning
from .refusal import Place, Refusal

Guard = Callable[[Partitioning], Mapping[Place, Refusal]]
Decide = Callable[[Mapping[Place, Refusal]], Partitioning]


def settled(
    decide: Decide, guard: Guard | None, refused: Mapping[Place, Refusal] | None = None
) -> tuple[Partitioning, dict[Place, Refusal]]:
    """Partition again until the guard refuses nothing new; -> the partitioning, and all refusals.
    `refused` are those from before.

    What is refused may be taken by the next composite, which the guard sees too. It ends: each
    round refuses a composite at one more place.
    """
    if guard is not None and not callable(cast(Any, guard)):
        text = "guard: expected a guard, such as selfbyoc.MeasuredGuard()"
        raise InputError(f"{text}, found {guard!r}")
    refused = dict(refused or {})
    while True:
        decided = decide(refused)
        new = {p: r for p, r in guard(decided).items() if p not in refused} if guard else {}
        if not new:
            return decided, refused
        refused |= new
