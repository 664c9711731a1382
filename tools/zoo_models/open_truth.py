"""What a model computes at each of its open sizes, by PyTorch in float64."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .model import Made
from .sizes import BATCH, SIZES, inputs_at
from .truth import CHAOS, DRAWS, Truth, judged, truth_of_module

FEW = (*range(7), 32, 127)  # pictures that are computed first: of each batch also the last
PART = 17  # pictures that PyTorch is given at once
MOST_SECONDS = 60.0  # of PyTorch for all pictures; where it takes more, those few are compared

CALM = 0.9  # of the pictures, at least: what PyTorch itself computes in float32 is right there


@dataclass(frozen=True)
class Judge:
    """What tells of a size and its outputs whether they are right; of all pictures some are left
    out, with which PyTorch's own float32 proves nothing.
    """

    judged: Callable[[int, Sequence[np.ndarray]], dict[str, Any]]
    left_out: int = 0


def judge_of(made: Made, which: str, sizes: Sequence[int]) -> Judge:
    """What tells whether outputs at one of these sizes are right. Pictures of a batch do not see
    each other: each is computed once for all batches, if every output has a row for each.
    """
    if which == BATCH and (pictures := _pictures(made)) is not None:
        calm = _calm(pictures)
        return Judge(calm.judged, len(pictures.rows) - len(calm.rows))
    truths = {size: _truth(made, inputs_at(made, which, size)) for size in sizes}
    return Judge(lambda size, found: judged(found, truths[size]))


def _truth(made: Made, inputs: tuple[Any, ...], chaos: float = CHAOS) -> Truth:
    made.module.float()  # where the last truth left it in float64
    return truth_of_module(Made(made.module, inputs), chaos, DRAWS)


@dataclass(frozen=True)
class _Pictures:
    """The truth of these pictures of the largest batch, in this order."""

    rows: Sequence[int]
    truth: Truth

    def judged(self, size: int, found: Sequence[np.ndarray]) -> dict[str, Any]:
        """Whether these are the outputs of the first pictures, as far as those are known."""
        if any(np.shape(one)[:1] != (size,) for one in found):
            return {"reason": f"outputs are {[np.shape(one) for one in found]}"}
        here = self.only([place for place, row in enumerate(self.rows) if row < size])
        return judged([one[list(here.rows)] for one in found], here.truth)

    def only(self, places: Sequence[int]) -> _Pictures:
        """These of them, by their places in this order."""
        known = (self.truth.outputs, self.truth.theirs)
        outputs, theirs = ([one[list(places)] for one in each] for each in known)
        truth = Truth((), outputs, theirs, self.truth.live)
        return _Pictures([self.rows[place] for place in places], truth)


def _pictures(made: Made) -> _Pictures | None:
    """None where an output has other axes."""
    inputs = inputs_at(made, BATCH, SIZES[-1])

    def truth_of(rows: Sequence[int]) -> Truth:
        return _truth(made, tuple(given[list(rows)] for given in inputs), math.inf)

    began = time.perf_counter()
    parts = [truth_of(FEW)]
    if any(np.shape(one)[:1] != (len(FEW),) for one in parts[0].outputs):
        return None
    seconds = (time.perf_counter() - began) * SIZES[-1] / len(FEW)
    rest = [row for row in range(SIZES[-1]) if row not in FEW and seconds < MOST_SECONDS]
    parts += [truth_of(rest[at : at + PART]) for at in range(0, len(rest), PART)]
    return _Pictures([*FEW, *rest], _joined(parts))


def _calm(pictures: _Pictures) -> _Pictures:
    """Those of pictures with which PyTorch's float32 is near its float64. Raises ValueError where
    these are too few, or the first, which is a batch of 1, is none of them.
    """
    off = np.zeros(len(pictures.rows))
    for exact, theirs in zip(pictures.truth.outputs, pictures.truth.theirs, strict=True):
        apart = np.abs(np.asarray(theirs, np.float64) - exact).reshape(len(off), -1)
        largest = float(np.abs(exact).max(initial=0.0)) or 1.0
        off = np.maximum(off, apart.max(axis=1, initial=0.0) / largest)
    places = [place for place, error in enumerate(off) if error <= CHAOS]
    if len(places) < CALM * len(off) or pictures.rows[places[0]] != 0:
        text = f"{len(off) - len(places)} of {len(off)} pictures: nothing can be compared"
        raise ValueError(f"PyTorch itself is off by {off.max():.1e} in float32, with {text}")
    return pictures.only(places)


def _joined(parts: Sequence[Truth]) -> Truth:
    outputs, theirs = (
        [np.concatenate(each) for each in zip(*lists, strict=True)]
        for lists in ([p.outputs for p in parts], [p.theirs for p in parts])
    )
    return Truth((), outputs, theirs, max(part.live for part in parts))
