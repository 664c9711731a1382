"""A process that calls functions for this one: what crashes or hangs there does not end the run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from subprocess import DEVNULL
from typing import Generic, TypeVar

from ..errors import one_line
from ..tvm.tune import worker_process

_LOAD = 60.0  # seconds


class Failed(Exception):
    """A call in another process failed; `late` where it did not end in time, `ended` where the
    process did.
    """

    def __init__(self, text: str, late: bool = False, ended: bool = False) -> None:
        super().__init__(text)
        self.late, self.ended = late, ended


class Process:
    """One process of TVM's, started when it is called and again after each crash."""

    def __init__(self) -> None:
        # Silent: a crash is told in one line, and TVM 0.27 would dump its stack.
        self._worker = worker_process(
            initializer=_initializer(), initargs=(sys.path,), stdout=DEVNULL, stderr=DEVNULL
        )
        self.calls = 0  # of the process that runs now

    def start(self) -> None:
        """Begin with what takes seconds, loading TVM, before there is anything to call."""
        self.call(_nothing, seconds=_LOAD)
        self.calls = 0

    def call(self, function: Callable[..., R], *args: object, seconds: float) -> R:
        """What an importable function returns. Raises Failed with its error in one line, or with
        how its process ended: after `seconds` it is killed.
        """
        self._worker.send(_called, (function, args, seconds))
        process = self._worker._proc
        self.calls += 1
        try:
            is_right, found = self._worker.recv()
        except (ChildProcessError, EOFError, OSError) as err:
            self.end()
            late = process.returncode == -signal.SIGALRM
            raise Failed(_ending(process.returncode, seconds), late, not late) from err
        if not is_right:
            raise Failed(found)
        return found

    def end(self) -> None:
        """Make sure that it is gone."""
        self._worker.kill()
        self.calls = 0


def _initializer() -> Callable[[Sequence[str]], None]:
    """A nested function, which travels as code: the process cannot import ours yet."""

    def prepare(path: Sequence[str]) -> None:
        import signal
        import sys

        sys.path[:] = path
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides what Ctrl-C means

    return prepare


def _nothing() -> None:
    pass


def _called(
    function: Callable[..., object], args: Sequence[object], seconds: float
) -> tuple[bool, object]:
    """Call it in the process. The alarm ends a process that hangs in a kernel, where no Python
    runs, even if nobody waits for it any more.
    """
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return True, function(*args)
    except Exception as err:  # whatever it is, it is told to the run
        return False, one_line(err)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _ending(status: int | None, seconds: float) -> str:
    if status == -signal.SIGALRM:
        return f"it did not end within {seconds:g} s"
    if status is not None and status < 0:
        return f"its process ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status}"


T = TypeVar("T")
R = TypeVar("R")
U = TypeVar("U")


class Pool(Generic[T]):
    """Workers side by side, each of which does one thing at a time."""

    def __init__(self, workers: Sequence[T]) -> None:
        self.workers = tuple(workers)
        self._idle: SimpleQueue[T] = SimpleQueue()
        for worker in workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(len(workers))

    def start(self, function: Callable[[T], object]) -> None:
        """Begin with `function(worker)` for each; what is asked of them waits for that."""
        for worker in [self._idle.get() for _ in self.workers]:
            self._threads.submit(self._started, function, worker)

    def _started(self, function: Callable[[T], object], worker: T) -> None:
        try:
            function(worker)
        finally:
            self._idle.put(worker)

    def map(self, function: Callable[[T, U], R], items: Sequence[U]) -> list[R]:
        """`function(worker, item)` for each item, with whichever worker is idle."""
        return list(self._threads.map(lambda item: self._one(function, item), items))

    def _one(self, function: Callable[[T, U], R], item: U) -> R:
        worker = self._idle.get()
        try:
            return function(worker, item)
        finally:
            self._idle.put(worker)

    def end(self) -> None:
        """Wait for what is under way."""
        self._threads.shutdown()
