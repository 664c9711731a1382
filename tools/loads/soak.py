"""Builds and calls without end in one process: memory and threads are sampled, a slope is fitted.

    python -m loads.soak ROAD COUNT [FOLDER]

One line of JSON at the end.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .models import LARGE, Model, model, ours, tvm_alone

SAMPLES = 50
WARM = 0.25  # of the samples: what grows at first is caches, pools and arenas
DIFFERENT = 30  # models of one road: all of them were built once when the warm-up is over
_libc = ctypes.CDLL(None)


def resident() -> int:
    """Bytes of this process in memory, after what can be given back was."""
    gc.collect()
    _libc.malloc_trim(0)
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * 4096


def threads() -> int:
    """Threads of this process, TVM's among them."""
    return len(list(Path("/proc/self/task").iterdir()))


def built(build: Callable[[Model], object], of: Callable[[int], int]) -> Callable[[int], None]:
    """Build and call the model of each number once, checked."""

    def once(number: int) -> None:
        found = model(of(number))
        arrays = found.arrays(number)
        library = build(found)
        if text := found.wrong(library(*arrays), arrays):  # type: ignore[operator]
            raise SystemExit(f"model {of(number)} is wrong: {text}")

    return once


def called(build: Callable[[Model], object], found: Model | None = None) -> Callable[[int], None]:
    """Call one library; its result is compared with the first, which was checked."""
    found = found or model(3)
    arrays = found.arrays(0)
    library = build(found)
    first = library(*arrays)  # type: ignore[operator]
    assert not found.wrong(first, arrays)

    def once(number: int) -> None:
        again = library(*arrays)  # type: ignore[operator]
        if not np.array_equal(first[0], again[0]):
            raise SystemExit(f"call {number} gives something else")

    return once


def from_threads(once: Callable[[int], None]) -> Callable[[int], None]:
    """Each call in a thread of its own, which ends after it."""

    def threaded(number: int) -> None:
        worker = threading.Thread(target=once, args=(number,))
        worker.start()
        worker.join()

    return threaded


def road(name: str, folder: str) -> Callable[[int], None]:
    """What is done over and over."""
    different = lambda n: n % DIFFERENT  # noqa: E731
    roads = {
        "builds": lambda: built(ours, different),
        "same": lambda: built(ours, lambda n: 0),
        "cached": lambda: built(lambda m: ours(m, folder), different),
        "tvm": lambda: built(tvm_alone, different),
        "tvm-same": lambda: built(tvm_alone, lambda n: 0),
        "calls": lambda: called(ours),
        "tvm-calls": lambda: called(tvm_alone),
        "threads": lambda: from_threads(called(ours, LARGE)),
        "tvm-threads": lambda: from_threads(called(tvm_alone, LARGE)),
    }
    return roads[name]()


def soaked(name: str, count: int, folder: str) -> dict[str, object]:
    """The figures of one road."""
    once = road(name, folder)
    every = max(1, count // SAMPLES)
    taken = []
    start = time.process_time()
    for number in range(count):
        once(number)
        if number % every == every - 1:
            taken.append((number + 1, resident(), threads()))
    found = np.array(taken[int(len(taken) * WARM) :], float)
    slope, level = np.polyfit(found[:, 0], found[:, 1], 1)
    rest = found[:, 1] - slope * found[:, 0] - level
    return {
        "road": name, "count": count, "bytes_each": float(slope),
        "error": float(_error(found[:, 0], rest)),
        "begin": int(found[0, 1]), "end": int(found[-1, 1]),
        "grown": int(found[-1, 2] - found[0, 2]),
        "seconds": time.process_time() - start,
    }  # fmt: skip


def _error(where: np.ndarray, rest: np.ndarray) -> float:
    """The slope's standard error."""
    spread = ((where - where.mean()) ** 2).sum()
    return float(np.sqrt((rest**2).sum() / max(1, len(rest) - 2) / spread))


if __name__ == "__main__":
    road_name, wanted = sys.argv[1], int(sys.argv[2])
    print(json.dumps(soaked(road_name, wanted, sys.argv[3] if len(sys.argv) > 3 else "")))
