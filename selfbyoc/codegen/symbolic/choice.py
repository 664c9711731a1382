"""Which function of a kernel a size takes, as an expression."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...tvm import tir
from ...tvm.types import PrimExpr
from .learn import Learnt
from .served import Steps

NONE = -1  # no function


@dataclass
class Chosen:
    """The kernels of some sizes, and which of them each size of the symbol with families takes."""

    functions: list[Any] = field(default_factory=list)
    learnt: list[Learnt] = field(default_factory=list)  # for many sizes: the first functions
    by_size: dict[int, int] = field(default_factory=dict)
    by_rest: dict[Steps, dict[int, int]] = field(default_factory=dict)  # after such steps: the same

    def number(self, size: PrimExpr, first: int) -> PrimExpr:
        """Which kernel a size takes, as an expression; `first` are before these."""
        found = _number(size, self.by_size, first)
        for (step, rest), by_size in self.by_rest.items():
            is_one = tir.all(size >= min(by_size), tir.floormod(size, step) == rest)
            found = tir.Select(is_one, _number(size, by_size, first), found)
        return found


def _number(size: PrimExpr, by_size: Mapping[int, int], first: int) -> PrimExpr:
    """Which kernel a size takes, as an expression; a size between two known ones takes that of the
    larger one, and any beyond them that of the largest.
    """
    known = sorted(by_size.items())
    total: Any = tir.IntImm("int32", first + known[0][1])
    for (below, old), (_, new) in itertools.pairwise(known):
        if new != old:
            total = total + tir.Cast("int32", size > below) * (new - old)
    return total
