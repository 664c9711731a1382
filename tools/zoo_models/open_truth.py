"""What a model computes at each of its open sizes, by PyTorch in float64."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .model import Made
from .sizes import BATCH, SIZES, inputs_at
from .truth import Truth, judged, truth_of_module

FEW = (*range(7), 32, 127)  # pictures that are computed first: of each batch also the last
PART = 17  # pictures that PyTorch is given at once
MOST_SECONDS = 60.0  # of PyTorch for all pictures; where it takes more, those few are compared

Judge = Callable[[int, Sequence[np.ndarray]], dict[str, Any]]


def judge_of(made: Made, which: str, sizes: Sequence[int]) -> Judge:
    """What tells whether outputs at one of these sizes are right. Pictures of a batch do not see
    each other: each is computed once for all batches, if every output has a row for each.
    """
    if which == BATCH and (pictures := _pictures(made)) is not None:
        return pictures.judged
    truths = {size: _truth(made, inputs_at(made, which, size)) for size in sizes}
    return lambda size, found: judged(found, truths[size])


def _truth(made: Made, inputs: tuple[Any, ...]) -> Truth:
    made.module.float()  # where the last truth left it in float64
    return truth_of_module(Made(made.module, inputs))


@dataclass(frozen=True)
class _Pictures:
    """The truth of these pictures of the largest batch, in this order."""

    rows: Sequence[int]
    truth: Truth

    def judged(self, size: int, found: Sequence[np.ndarray]) -> dict[str, Any]:
        """Whether these are the outputs of the first pictures, as far as those are known."""
        if any(np.shape(one)[:1] != (size,) for one in found):
            return {"reason": f"outputs are {[np.shape(one) for one in found]}"}
        places = [place for place, row in enumerate(self.rows) if row < size]
        rows = [self.rows[place] for place in places]
        known = (self.truth.outputs, self.truth.theirs)
        outputs, theirs = ([one[places] for one in each] for each in known)
        truth = Truth((), outputs, theirs, self.truth.live)
        return judged([one[rows] for one in found], truth)


def _pictures(made: Made) -> _Pictures | None:
    """None where an output has other axes."""
    inputs = inputs_at(made, BATCH, SIZES[-1])

    def truth_of(rows: Sequence[int]) -> Truth:
        return _truth(made, tuple(given[list(rows)] for given in inputs))

    began = time.perf_counter()
    parts = [truth_of(FEW)]
    if any(np.shape(one)[:1] != (len(FEW),) for one in parts[0].outputs):
        return None
    seconds = (time.perf_counter() - began) * SIZES[-1] / len(FEW)
    rest = [row for row in range(SIZES[-1]) if row not in FEW and seconds < MOST_SECONDS]
    parts += [truth_of(rest[at : at + PART]) for at in range(0, len(rest), PART)]
    return _Pictures([*FEW, *rest], _joined(parts))


def _joined(parts: Sequence[Truth]) -> Truth:
    outputs, theirs = (
        [np.concatenate(each) for each in zip(*lists, strict=True)]
        for lists in ([p.outputs for p in parts], [p.theirs for p in parts])
    )
    return Truth((), outputs, theirs, max(part.live for part in parts))
