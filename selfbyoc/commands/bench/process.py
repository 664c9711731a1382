"""A contender's process, as the one who measures sees it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing import Pipe
from typing import Any

from ...errors import SelfbyocError

# As Python's command line has them; each takes the contender's name and a descriptor.
WORKER = ("-m", "selfbyoc.commands.bench.worker")
OPEN_WORKER = ("-m", "selfbyoc.commands.bench.open_worker")


class Failed(SelfbyocError, RuntimeError):
    """A contender raised, died or took too long; the text is what the table shows."""


class Process:
    """Started when it is first asked something, and again after it died.

    A process each, because thread pools spin: ONNX Runtime's, PyTorch's and TVM's would take turns
    on the same cores within one process, and a crash or a leak of one would be everybody's.
    `worker` is the program that it runs.
    """

    def __init__(self, name: str, threads: int, worker: Sequence[str] = WORKER) -> None:
        self.name, self._threads, self._worker = name, threads, worker
        self._child: subprocess.Popen[bytes] | None = None

    def ask(self, request: str, *args: object, limit: float = 600.0) -> Any:
        """Send a request and wait for its answer, `limit` seconds at most."""
        if self._child is None:
            self._start()
        try:
            self._pipe.send((request, args))
            if not self._pipe.poll(limit):
                raise Failed(f"took more than {limit:g} s")
            answer, problem = self._pipe.recv()
        except (EOFError, OSError) as err:
            raise Failed(self._epitaph()) from err
        except Failed:
            self.close()
            raise
        if problem is not None:
            raise Failed(problem)
        return answer

    @property
    def pid(self) -> int | None:
        """Of the process, where one runs."""
        return self._child.pid if self._child else None

    def _start(self) -> None:
        self._pipe, other = Pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the process has ended)
        command = [sys.executable, *self._worker, self.name, str(other.fileno())]
        self._child = subprocess.Popen(
            command, env=environment(self._threads), pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said,
        )  # fmt: skip
        other.close()

    def _epitaph(self) -> str:
        """How the process ended, after it did so by itself."""
        code = self._child.wait() if self._child else None
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        self.close()
        return f"died with status {code}" + (f": {lines[-1]}" if lines else "")

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._pipe.close()
            self._said.close()
            self._child = None


def environment(threads: int) -> dict[str, str]:
    """As many threads for every runtime, and the folder of this package first."""
    paths = [p for p in sys.path if p]
    count = str(threads)
    found = dict(os.environ, TVM_NUM_THREADS=count, OMP_NUM_THREADS=count, MKL_NUM_THREADS=count)
    return found | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *paths])}
