"""A quantised model beside the one that it was made of: how near its results are, and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...models.batches import Batch
from ...runtime.timing import Latency, latency

if TYPE_CHECKING:
    from ...runtime.library import Library

FLOATS, LEVELS = "float", "levels"
WINDOWS, BUDGET = 15, 3.0  # of 20 ms; seconds


@dataclass(frozen=True)
class Nearness:
    """One output of a model of levels beside that of floats, on all batches.

    decibels  signal to noise: 20 is a tenth of the signal's size, 40 a hundredth
    largest   difference, as a part of the largest value
    same      share of the rows whose largest element is the same one; None: no rows of classes
    """

    name: str
    decibels: float
    largest: float
    same: float | None


def nearness(floats: Library, levels: Library, batches: Sequence[Batch]) -> list[Nearness]:
    """By output."""
    results = [(floats(batch), levels(batch)) for batch in batches]
    names = [name for name, _, _ in floats.outputs]
    return [
        near(name, [(exact[n], found[n]) for exact, found in results])
        for n, name in enumerate(names)
    ]


def near(name: str, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Nearness:
    """Of what one output is in floats and in levels, call by call."""
    signal = sum(float(np.square(exact, dtype=np.float64).sum()) for exact, _ in pairs)
    rest = [exact.astype(np.float64) - found for exact, found in pairs]
    noise = sum(float(np.square(each).sum()) for each in rest)
    with np.errstate(divide="ignore", invalid="ignore"):
        decibels = float(10 * np.log10(np.float64(signal) / noise))
    size = max((float(np.abs(exact).max(initial=0)) for exact, _ in pairs), default=0.0)
    largest = max((float(np.abs(each).max(initial=0)) for each in rest), default=0.0)
    return Nearness(name, decibels, largest / size if size else largest, _same(pairs))


def _same(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    if any(exact.ndim < 2 or exact.shape[-1] < 2 for exact, _ in pairs):
        return None
    equal = [exact.argmax(-1) == found.argmax(-1) for exact, found in pairs]
    return float(np.concatenate([each.reshape(-1) for each in equal]).mean())


def times(floats: Library, levels: Library, batch: Batch) -> dict[str, Latency]:
    """Both in turns, on one batch."""
    runs = {FLOATS: floats.prepared(batch), LEVELS: levels.prepared(batch)}
    return latency(runs, WINDOWS, BUDGET)
