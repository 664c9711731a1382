"""A build as it goes on: what there is to do, about how long that takes, and how much is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from ..codegen.progress import Work, watching
from ..common.parts import heard_by
from ..common.threads import core_count
from ..printable import counted
from .progress import step

# Seconds of one core for a kernel: of fixed sizes; learnt for open ones; of attention with one open
# size, and with two. BERT, DistilBERT and ResNet-18 on two cores of an AMD EPYC (Zen 5), 2026.
FIXED, LEARNT, ATTENTION, ATTENTION_OF_TWO = 0.3, 1.8, 6.0, 13.0
REST = 3.0  # what no kernel holds, linking


@contextmanager
def building(name: str, console: Console) -> Iterator[None]:
    """Around a build: a line before kernels are learnt, and how many are done on the terminal."""
    with step(f"building {name}") as says:
        shown = _Shown(name, console, says)
        with watching(shown), heard_by(shown.part):
            yield


class _Shown:
    """Tells a terminal of a build."""

    def __init__(self, name: str, console: Console, says: Callable[[str], None]) -> None:
        self._name, self._console, self._says = name, console, says
        self._count = self._done = 0
        self._began = 0.0
        self._is_told = False
        self._lock = threading.Lock()

    def begun(self, work: Work) -> None:
        """Say about how long it takes; once, where a build begins anew without a composite."""
        self._count, self._done = work.kernels, 0
        self._began = time.perf_counter()
        if work.learnt and not self._is_told:
            self._is_told = True
            self._console.print(foretold(work), markup=False, highlight=False, soft_wrap=True)

    def part(self, text: str) -> None:
        """Say what is done now."""
        self._says(f"building {self._name}: {text}")

    def done(self) -> None:
        """Count."""
        with self._lock:
            self._done = min(self._done + 1, self._count)
            of = counted(self._count, "kernel")
            self.part(f"{self._done} of {of} compiled{self._left()}")

    def _left(self) -> str:
        """How long the rest takes, if it goes on like this; not of those learnt for open sizes,
        each of which takes as long as a dozen.
        """
        left = (time.perf_counter() - self._began) * (self._count / self._done - 1)
        return f", about {left:.0f} s left" if left >= 1 and not self._is_told else ""


def foretold(work: Work) -> str:
    """`5 kernels, 4 to learn for all sizes, 1 in the cache: about 20 s`."""
    kernels = counted(work.kernels, "kernel")
    kept = work.kernels - len(work.learnt) - work.compiled
    cached = f", {kept} in the cache" if kept else ""
    return (
        f"{kernels}, {len(work.learnt)} to learn for all sizes{cached}: about "
        f"{_rounded(estimate(work, core_count()))}"
    )


def estimate(work: Work, cores: int) -> float:
    """Seconds: several kernels at once, the longest of them by itself."""
    each = [_seconds(composite, composite in work.of_several) for composite in work.learnt]
    total = sum(each) + FIXED * work.compiled
    return max(total / cores, max(each, default=0.0)) + REST


def _seconds(composite: str, of_several: bool) -> float:
    if not composite.startswith("attention"):
        return LEARNT
    return ATTENTION_OF_TWO if of_several else ATTENTION


def _rounded(seconds: float) -> str:
    """To what an estimate can say: `15 s`, `3 min`."""
    if seconds >= 100:
        return f"{seconds / 60:.0f} min"
    return f"{5 * max(1, round(seconds / 5))} s"
