"""Kernels against each other on one device: are they right, and how long do they take.

What runs here runs in a process of its own, and knows files only. `Local` is the device of this
machine; another one has the same two methods.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..runtime.timing import Window, window
from ..runtime.tolerance import bound_of, difference
from ..tvm import get_func, tensor, tvm
from ..tvm.types import NDArray
from .pairs import ratio
from .rounding import allowed

WINDOW, WARM = 0.02, 0.002  # seconds; the threads of the kernel before still spin for a while
SLOW = 3.0  # times as slow as the default: timed twice
SEEDS = (0, 1)  # of random inputs; the first ones are for timing


@dataclass(frozen=True)
class Kernel:
    """One candidate: LLVM IR in a file named by its symbol, and its arguments for each seed."""

    artifact: str
    arguments: str


@dataclass(frozen=True)
class Job:
    """Kernels to compare, the default one first.

    outputs    shape and dtype of each output
    reduction  terms of the longest sum, for the tolerance
    seconds    of timing, for each kernel
    allowed    '', or a file of what more than the tolerance the outputs may differ by
    weights    positions of what is at another place in each call, for so many calls (copies)
    """

    kernels: tuple[Kernel, ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    reduction: int
    seconds: float
    allowed: str = ""
    weights: tuple[int, ...] = ()
    copies: int = 1


@dataclass(frozen=True)
class Measured:
    """Seconds a call of each kernel; or which one is wrong first, and how.

    turns   of each kernel, seconds a call in each turn; fewer of one that is slow
    """

    seconds: tuple[float, ...]
    wrong: str = ""
    turns: tuple[tuple[float, ...], ...] = ()


class Opened(Protocol):
    """A kernel on a device."""

    def run(self, tensors: Sequence[NDArray]) -> None:
        """Call it once, and wait for it."""

    def window(self, sets: Sequence[Sequence[NDArray]]) -> Window:
        """Call it for some time, with one set of tensors after the other."""


class Device(Protocol):
    """Where kernels run; it can be pickled."""

    def open(self, artifact: Path) -> Opened:
        """The kernel in a file."""

    def place(self, array: np.ndarray) -> NDArray:
        """An array as a tensor there; `.numpy()` brings it back."""


@dataclass(frozen=True)
class Local:
    """This machine's CPU."""

    def open(self, artifact: Path) -> Opened:
        """The kernel in a file."""
        return _LocalKernel(get_func(tvm.runtime.load_module(str(artifact)), artifact.stem))

    def place(self, array: np.ndarray) -> NDArray:
        """A copy, aligned as TVM wants it."""
        return tensor(np.asarray(array, order="C"))


@dataclass(frozen=True)
class _LocalKernel:
    function: Any

    def run(self, tensors: Sequence[NDArray]) -> None:
        self.function(*tensors)

    def window(self, sets: Sequence[Sequence[NDArray]]) -> Window:
        function, turns = self.function, cycle(sets)
        return window(lambda: function(*next(turns)), WINDOW, WARM)


def measured(device: Device, job: Job) -> Measured:
    """Check each kernel against the first one, then time them in turns."""
    opened = [device.open(Path(kernel.artifact)) for kernel in job.kernels]
    loaded = [_arguments(kernel.arguments) for kernel in job.kernels]
    if wrong := _wrong(device, job, opened, loaded):
        return Measured((), wrong)
    placed = [_sets(device, job, given[0]) for given in loaded]
    turns = _turns(opened, placed, job.seconds)
    return Measured(seconds(turns), turns=turns)


def _sets(device: Device, job: Job, given: Sequence[np.ndarray]) -> list[list[NDArray]]:
    """The tensors of one call after the other, which differ in where the weights are."""
    first = [device.place(a) for a in [*given, *_poisoned(job)]]
    more = [{i: device.place(given[i]) for i in job.weights} for _ in range(job.copies - 1)]
    return [first, *([new.get(i, t) for i, t in enumerate(first)] for new in more)]


def save_arguments(path: Path, given: Sequence[Sequence[np.ndarray]]) -> None:
    """Write the arguments for each seed into one file."""
    named = {f"{k}_{n}": a for k, arrays in enumerate(given) for n, a in enumerate(arrays)}
    np.savez(path, **named)  # type: ignore[arg-type]


def _arguments(path: str) -> list[list[np.ndarray]]:
    with np.load(path) as file:
        counts = [sum(name.startswith(f"{k}_") for name in file.files) for k in range(len(SEEDS))]
        return [[file[f"{k}_{n}"] for n in range(count)] for k, count in enumerate(counts)]


def _poisoned(job: Job) -> list[np.ndarray]:
    """Outputs full of NaN (of -1, if integers): what a kernel leaves out is seen."""
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in job.outputs]
    return [
        np.frombuffer(b"\xff" * size, dtype).reshape(shape)
        for size, (shape, dtype) in zip(sizes, job.outputs, strict=True)
    ]


def _outputs(
    device: Device, job: Job, kernel: Opened, arrays: Sequence[np.ndarray]
) -> list[np.ndarray]:
    outputs = [device.place(array) for array in _poisoned(job)]
    kernel.run([*(device.place(array) for array in arrays), *outputs])
    return [output.numpy() for output in outputs]


def _wrong(
    device: Device, job: Job, opened: Sequence[Opened], loaded: Sequence[list[list[np.ndarray]]]
) -> str:
    """What the first kernel that is wrong computes; '' where all are right."""
    finite = False
    for k in range(len(SEEDS)):
        expected = _outputs(device, job, opened[0], loaded[0][k])
        finite = finite or any(np.isfinite(e).any() for e in expected)
        for kernel, given in zip(opened, loaded, strict=True):
            found = _outputs(device, job, kernel, given[k])
            for n, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
                if off := _off(ours, theirs, job.reduction, _allowed(job, k, n)):
                    return f"output {n}: {off}"
    return "" if finite else "the default computes nothing but NaN and infinity"


def _allowed(job: Job, k: int, n: int) -> np.ndarray:
    return allowed(job.allowed, k, n) if job.allowed else np.asarray(0.0)


def _off(found: np.ndarray, expected: np.ndarray, reduction: int, more: np.ndarray) -> str:
    """Both may deviate from the truth, hence twice the tolerance. There is nothing to compare where
    the default is not finite.
    """
    dtype, known = str(expected.dtype), np.isfinite(expected)
    masked = more.dtype == bool
    known = known & ~more if masked else known
    slack = bound_of(expected, dtype, reduction) + (0.0 if masked else float(more))
    ours, theirs = np.where(known, found, 0), np.where(known, expected, 0)
    wrong = difference(ours, theirs, dtype, reduction, slack)
    return "" if wrong is None else str(wrong)


def _turns(
    opened: Sequence[Opened], placed: Sequence[Sequence[Sequence[NDArray]]], budget: float
) -> tuple[tuple[float, ...], ...]:
    """Windows in turns, forth and back, so that what disturbs, disturbs all alike."""
    found: list[list[float]] = [[] for _ in opened]
    order, spent = list(range(len(opened))), 0.0
    while spent < budget or len(found[0]) < 3:
        for n in order if len(found[0]) % 2 == 0 else order[::-1]:
            turn = opened[n].window(placed[n])
            spent += turn.seconds * (n == 0)
            found[n].append(turn.seconds / turn.calls)
        order = [n for n in order if not _is_slow(found[n], found[0])]
    return tuple(map(tuple, found))


def _is_slow(times: Sequence[float], default: Sequence[float]) -> bool:
    """Twice is no chance."""
    return len(times) > 1 and all(a > SLOW * b for a, b in zip(times, default, strict=False))


def seconds(turns: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Of each kernel: the default's median, times the median of the ratios to it, turn by turn."""
    default = statistics.median(turns[0])
    return tuple(default * ratio(t, turns[0][: len(t)]).median for t in turns)
