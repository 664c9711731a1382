"""Checks in a process of their own, so that a kernel that crashes does not take the user's along.

The worker is a fork: composites are Python functions, which cannot be sent to a fresh process. TVM
keeps a thread pool for each thread that launches kernels, and a fork has none of the workers of
the old ones: the checks run in a new thread, which gets a pool of its own.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .checks import BUILD, Plan, checks, verdict
from .records import CRASHED, HUNG, Check, Verdict
from .subjects import Subject

_SIZE = struct.Struct("<Q")


def in_place(subjects: Sequence[Subject], plan: Plan) -> Iterator[Verdict]:
    """Verify in this process; a crash ends it."""
    for subject in subjects:
        found = [e.check for e in checks(subject, plan) if e.check is not None]
        yield verdict(subject, plan, found)


def isolated(subjects: Sequence[Subject], plan: Plan) -> Iterator[Verdict]:
    """Verify in a fork, and in another one after each crash."""
    waiting = list(subjects)
    while waiting:
        for subject, found in _one_fork(tuple(waiting), plan):
            waiting.remove(subject)
            yield verdict(subject, plan, found)


def can_isolate() -> bool:
    """Whether this system can fork."""
    return hasattr(os, "fork")


def _one_fork(subjects: Sequence[Subject], plan: Plan) -> Iterator[tuple[Subject, list[Check]]]:
    """The subjects that one worker gets through; the last may be the one that it crashed on."""
    worker = Worker(lambda send: _work(subjects, plan, send), plan.timeout)
    try:
        for subject in subjects:
            found: list[Check] = []
            stage, crash = BUILD, ""
            while (event := worker.receive()) is not None and not isinstance(event, str):
                stage = event.stage
                found += [event.check] if event.check is not None else []
            if event is None:
                crash = worker.ending()
                found.append(Check(stage, HUNG if worker.late else CRASHED, crash))
            yield subject, found
            if crash:
                return
    finally:
        worker.end()


def _work(subjects: Sequence[Subject], plan: Plan, send: Callable[[object], None]) -> None:
    for subject in subjects:
        for event in checks(subject, plan):
            send(event)
        send("done")


class Worker:
    """A forked process that sends pickled objects."""

    def __init__(self, body: Callable[[Callable[[object], None]], None], timeout: float) -> None:
        self.timeout = timeout
        self.pipe, to_parent = os.pipe()
        self.status: int | None = None
        self.late = False
        with warnings.catch_warnings():
            # Python 3.12 warns of any fork with other threads about; see the top of this file.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _run_and_exit(body, to_parent)
        os.close(to_parent)

    def receive(self) -> Any | None:
        """The next object, or None at the end."""
        head = self._read(_SIZE.size)
        body = self._read(_SIZE.unpack(head)[0]) if head else b""
        return pickle.loads(body) if body else None

    def _read(self, size: int) -> bytes:
        parts = b""
        deadline = time.monotonic() + self.timeout
        while len(parts) < size:
            ready, _, _ = select.select([self.pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.late = True
                return b""
            part = os.read(self.pipe, size - len(parts))
            if not part:
                return b""
            parts += part
        return parts

    def ending(self) -> str:
        """How the process ended, in words."""
        self.end()
        if self.late:
            return f"it did not end within {self.timeout:g} s (timeout)"
        assert self.status is not None
        if os.WIFSIGNALED(self.status):
            return f"the process ended by {signal.Signals(os.WTERMSIG(self.status)).name}"
        return f"the process ended with status {os.WEXITSTATUS(self.status)}"

    def end(self) -> None:
        """Make sure that it is gone."""
        if self.status is not None:
            return
        if self.late or not self._has_ended(2.0):
            os.kill(self.pid, signal.SIGKILL)
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
        os.close(self.pipe)

    def _has_ended(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)


def _run_and_exit(body: Callable[[Callable[[object], None]], None], pipe: int) -> None:
    """In the fork: nothing of the parent's exit handlers may run."""
    # A crash is told in one line by the parent; TVM 0.27 and faulthandler would dump stacks.
    for fatal in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT):
        signal.signal(fatal, signal.SIG_DFL)
    finished: list[bool] = []

    def send(item: object) -> None:
        data = pickle.dumps(item)
        with contextlib.suppress(BrokenPipeError):
            _write(pipe, _SIZE.pack(len(data)) + data)

    def run() -> None:
        body(send)
        finished.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    os._exit(0 if finished else 1)


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]
