"""One library of a graph for all of its sizes: the symbolic kernels of docs/symbolic.md."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import FallbackWarning, InputError
from ...partition.refusal import SHAPE
from ..library import Library
from .eager import warn_of
from .options import Options
from .results import Results
from .sizes import Open, Sizes, results_at
from .specialised import Specialised

if TYPE_CHECKING:
    import torch

_COMPARED = 3  # sizes at which the results are compared with PyTorch's
_KEPT = 1024  # sizes of which is known how their results lie
# Functions that are no composite's. Others that TVM runs as serial loops only move elements.
_HEAVY = ("conv", "matmul")


class EverySize(Specialised):
    """A library with these weights that is called with any sizes of its graph."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        given: Sequence[torch.Tensor | int],
        weights: Sequence[int],
        options: Options,
        sizes: Open,
    ) -> None:
        self._open = sizes
        self._numbers = sizes.numbers_in(given)
        self._at: dict[Sizes, Results] = {}
        with warnings.catch_warnings():
            if not sizes.counts:  # a kernel for each size is faster than what falls back
                warnings.simplefilter("error", FallbackWarning)
            super().__init__(module, given, weights, options, sizes)
        if (reason := _left(self.library)) and sizes.counts:  # but a count is another in each call
            warn_of(module, f"one library serves every integer: {reason}")
        elif reason:
            raise InputError(reason)
        self._at[sizes.of(given)] = self._results

    def serves(self, given: Sequence[torch.Tensor | int]) -> bool:
        """As any library; and whether it was called with these sizes before."""
        sizes, numbers = self._open.of(given), self._open.numbers_in(given)
        return sizes in self._at and numbers == self._numbers and self.fits(given)

    def learn(self, given: Sequence[torch.Tensor | int]) -> None:
        """How the results lie at these sizes. Raises InputError where they are not PyTorch's."""
        self._results_for(given)

    def _results_for(self, given: Sequence[torch.Tensor | int]) -> Results:
        sizes = self._open.of(given)
        found = self._at.get(sizes)
        if found is not None:
            return found
        is_odd = min(sizes) < 2 or self._results.has_views  # what is of size 1 may be broadcast
        if len(self._at) < _COMPARED or is_odd:
            found = self._compared(given)
        else:
            symbols = dict(zip(self._open.places, sizes, strict=True))
            found = self._results.like(results_at(self._module, symbols))
        kept = list(self._at.items())[-_KEPT:]
        self._at = {**dict(kept), sizes: found}
        return found


def _left(library: Library) -> str:
    """What of a library is far slower since its sizes are open."""
    for name, why in library.unscheduled.items():
        if any(kind in name for kind in _HEAVY):
            return f"{name} would run as serial loops: {why}"
    records = library.report.records if library.report is not None else ()
    return next((r.reason for r in records if r.cause == SHAPE and not r.owner), "")
