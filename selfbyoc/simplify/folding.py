"""What reads no input is computed once, before anything is matched: which values that are.

Positions, causal masks, tables of sines, biases of relative positions: importers leave them as ops,
computed anew in each call, and a mask that is no constant hides what it masks.

Weights stay as they are where they are only moved, repeated or cast: composites read them so, and
lay them out themselves. What would take much more memory than it is computed from stays, too.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..common.interrupt import stopped
from ..errors import FallbackWarning, one_line
from ..tvm import tvm
from ..tvm.types import IRModule

SMALL = 1 << 20  # bytes that any value may take
GROWS = 2  # times the bytes that it is computed from, which a larger one may


@dataclass(frozen=True)
class Free:
    """A value that no input reaches."""

    read: int = 0  # bytes of the constants behind it
    is_computed: bool = False  # by more than moves

    def fits(self, size: int | None) -> bool:
        """Whether a value of so many bytes is worth its memory; None: nobody knows how many."""
        return size is not None and size <= max(SMALL, GROWS * self.read)


def joined(parts: Iterable[Free], is_computed: bool) -> Free:
    """A value made of others."""
    found = list(parts)
    is_computed = is_computed or any(part.is_computed for part in found)
    return Free(sum(part.read for part in found), is_computed)


def size_of(shape: Sequence[int], dtype: object) -> int:
    """Bytes of a tensor."""
    element = tvm.DataType(str(dtype))
    return math.prod(shape) * ((element.bits + 7) // 8) * element.lanes


def or_as_it_was(fold: Callable[[IRModule], IRModule]) -> Callable[[IRModule], IRModule]:
    """A module of which TVM cannot compute a part now is right as it was: that, with a warning."""

    @functools.wraps(fold)
    def done(mod: IRModule) -> IRModule:
        try:
            return fold(mod)
        except Exception as err:  # whatever TVM raises while it builds or runs that part
            if stopped(err):
                raise
            text = f"what reads no input is not computed ahead: {one_line(err)}"
            warnings.warn(FallbackWarning(text), stacklevel=2)
            return mod

    return done
