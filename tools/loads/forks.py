"""Processes that begin from one that has built and called: every way that Python has.

    python -m loads.forks

One line of JSON at the end: of each way, what was wrong.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .models import LARGE, ours

SECONDS = 900  # after which a process hangs
LIBRARY: Any = None


def right(seed: int) -> str:
    """Call what the first process built, and build and call anew; -> what is wrong."""
    signal.alarm(SECONDS)
    global LIBRARY
    if LIBRARY is None:  # spawned: nothing came along
        LIBRARY = ours(LARGE)
    arrays = LARGE.arrays(seed)
    wrong = LARGE.wrong(LIBRARY(*arrays), arrays)
    session = LIBRARY.session()
    same = np.array_equal(session(session.tensor(arrays[0]))[0].numpy(), LIBRARY(*arrays)[0])
    again = ours(LARGE)
    found = [wrong, None if same else "a session", LARGE.wrong(again(*arrays), arrays)]
    return "; ".join(text for text in found if text)


def in_pool(method: str) -> str:
    """A pool of two processes, with eight pieces of work."""
    with multiprocessing.get_context(method).Pool(2) as pool:
        return "; ".join(text for text in pool.map(right, range(8)) if text)


def in_process(method: str) -> str:
    """One process."""
    context: Any = multiprocessing.get_context(method)
    process = context.Process(target=right, args=(1,))
    process.start()
    process.join(SECONDS)
    return "" if process.exitcode == 0 else f"ended with {process.exitcode}"


def by_os(generations: int = 2) -> str:
    """os.fork, and again in the child."""
    pid = os.fork()
    if pid == 0:
        text = right(generations)
        if not text and generations > 1:
            text = by_os(generations - 1)
        os._exit(1 if text else 0)
    status = os.waitpid(pid, 0)[1]
    return f"ended with {status}" if status else ""


def with_threads() -> str:
    """os.fork while other threads call."""
    stop = threading.Event()

    def calls() -> None:
        arrays = LARGE.arrays(0)
        while not stop.is_set():
            LIBRARY(*arrays)

    others = [threading.Thread(target=calls) for _ in range(3)]
    for other in others:
        other.start()
    found = [by_os(1) for _ in range(10)]
    stop.set()
    for other in others:
        other.join()
    return "; ".join(text for text in found if text)


WAYS: dict[str, Callable[[], str]] = {
    "os.fork, twice": by_os,
    "os.fork beside threads that call": with_threads,
    **{
        f"multiprocessing.{what}, {method}": lambda run=run, method=method: run(method)  # type: ignore[misc]
        for what, run in (("Process", in_process), ("Pool", in_pool))
        for method in ("fork", "spawn", "forkserver")
    },
}


def main() -> None:
    """All ways, after calls that started TVM's pool here."""
    global LIBRARY
    LIBRARY = ours(LARGE)
    found = {"before": right(0)}
    signal.alarm(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: a fork beside threads
        found |= {name: way() for name, way in WAYS.items()}
    found["after"] = right(0)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
