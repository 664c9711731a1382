"""Compile once more without what raised, or cannot be read any more."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..codegen.fallback import ended
from ..common.interrupt import stopped
from ..errors import FallbackWarning, ReadingError
from ..partition.nothing_matched import warn_of_nothing
from ..partition.refusal import Place, Refusal
from ..partition.report import FALLBACK, report
from ..partition.unfuse import unfuse
from ..tvm.types import IRModule, Target
from .library import Library


def without_what_is_not_read(
    mod: IRModule, target: Target, compiled: Callable[[IRModule], Library]
) -> Library:
    """Compile a module that was partitioned before, perhaps by an older version; a function that
    takes packed weights and cannot be read becomes ordinary ops again. It ends: each round leaves
    fewer functions.
    """
    try:
        return compiled(mod)
    except ReadingError:
        found = {r.root: r for r in report(mod).matched if ended(r.symbol, target)}
        if not found:
            raise
        unfused = unfuse(mod, found)
    for root, record in found.items():
        text = f"composite {record.composite} at {root} {ended(record.symbol, target)}"
        warnings.warn(FallbackWarning(f"{text}; its ops are ordinary ones again"), stacklevel=4)
    return without_what_is_not_read(unfused, target, compiled)


def without_what_raises(
    partition: Callable[..., Any], target: Target, compiled: Callable[[IRModule], Library]
) -> Library:
    """Partition and compile; again without a built-in composite where it raised and not even the
    default schedule could serve. It ends: each round refuses a composite at one more place.
    """
    refused: dict[Place, Refusal] = {}
    while True:
        decided, refused = partition(refused)
        warn_of_nothing(decided.report, refused, stacklevel=4)
        parted = decided.finish(pack=True)
        try:
            return compiled(parted)
        except Exception as err:  # a composite's: it is known which by what fell back and ended
            if stopped(err):
                raise
            raised = {
                (r.composite, r.root): Refusal(FALLBACK, text)
                for r in report(parted).matched
                if (text := ended(r.symbol, target)) and (r.composite, r.root) not in refused
            }
            if not raised:
                raise
        for (composite, root), why in raised.items():
            text = f"composite {composite} at {root} {why.reason}; it is left out there"
            warnings.warn(FallbackWarning(text), stacklevel=4)
        refused |= raised
