"""A CPU behind an RPC server of TVM, as a device that kernels are measured on."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import one_line
from ..runtime.timing import Window
from ..tvm import get_func, tensor
from ..tvm.rpc import RPCSessionTimeoutError, connect, is_alive, loads_ir, use_threads
from ..tvm.types import Module, NDArray
from .measure import WINDOW, Job, Measured, measured
from .tracker import Server

# TVM's own: all that is read but the first argument, as a rule the image, goes out of the caches.
_FLUSH = "cache_flush_cpu_non_first_arg"


@dataclass(frozen=True)
class Reply:
    """What became of a job on a server: it was measured, or the job failed, or the server was lost.

    at_risk  the server was lost while kernels ran there, which may be why
    unfit    the server is not what the target says
    """

    found: Measured | None = None
    failed: str = ""
    lost: str = ""
    at_risk: bool = False
    unfit: str = ""


class Unfit(Exception):
    """The server is not what the target says."""


class Remote:
    """The CPU of a server with `cores` threads, for at most `limit` seconds.

    from_memory  whether kernels are timed without what they read in the caches
    """

    def __init__(self, server: Server, cores: int, limit: float, from_memory: bool = False) -> None:
        self.is_running, self.from_memory = False, from_memory
        self._session = connect(server.host, server.port, server.match_key, limit)
        self._device = self._session.cpu(0)
        threads = use_threads(self._session, cores)
        if threads != cores:
            raise Unfit(
                f"the target says num-cores {cores}, and TVM has {threads} threads there: "
                f"start the server with TVM_NUM_THREADS={cores}"
            )
        if not loads_ir(self._session):
            raise Unfit("its TVM was built without LLVM, and cannot load kernels")

    def is_alive(self) -> bool:
        """Whether the server still answers."""
        return is_alive(self._session)

    def open(self, artifact: Path) -> RemoteKernel:
        """The kernel in a file of LLVM IR."""
        self._session.upload(str(artifact))
        return RemoteKernel(self, self._session.load_module(artifact.name), artifact.stem)

    def place(self, array: np.ndarray) -> NDArray:
        """A copy on the server; `.numpy()` brings it back."""
        return tensor(np.asarray(array, order="C"), self._device)

    def seconds(self, module: Module, symbol: str, tensors: Sequence[NDArray], calls: int) -> float:
        """Seconds a call by the server's clock, after one that does not count."""
        self.is_running = True
        options: dict[str, Any] = {"number": calls, "repeat": 1}
        if self.from_memory:
            options = {"number": 1, "repeat": calls, "f_preproc": _FLUSH}
        timed = module.time_evaluator(symbol, self._device, **options)
        return float(np.median(timed(*tensors).results))


@dataclass
class RemoteKernel:
    """A kernel on a server."""

    remote: Remote
    module: Any
    symbol: str
    calls: int = 0  # in a window, once it is known

    def run(self, tensors: Sequence[NDArray]) -> None:
        """Call it once, and wait for it."""
        self.remote.is_running = True
        get_func(self.module, self.symbol)(*tensors)

    def window(self, sets: Sequence[Sequence[NDArray]]) -> Window:
        """Call it for some time; one message, as it would take longer than most kernels."""
        tensors = sets[0]
        if not self.calls:
            self.calls = _fitting(self._seconds(tensors, 1))
        calls, a_call = self.calls, self._seconds(tensors, self.calls)
        self.calls = _fitting(a_call)
        return Window(a_call * calls, calls, 0)

    def _seconds(self, tensors: Sequence[NDArray], calls: int) -> float:
        return self.remote.seconds(self.module, self.symbol, tensors, calls)


def _fitting(a_call: float) -> int:
    """Calls in a window; an empty kernel takes less than the clock shows."""
    return math.ceil(WINDOW / max(a_call, 1e-8))


def measured_there(server: Server, cores: int, limit: float, job: Job) -> Reply:
    """`measured` on a server; runs in a process of its own.

    Once its time is over the server writes an error into what its process may be writing too, and
    ends the process (both generations): then any error tells of the time, whatever it reads as.
    """
    began = time.monotonic()
    try:
        remote = Remote(server, cores, limit, from_memory=job.copies > 1)
    except Unfit as err:
        return Reply(unfit=str(err))
    except (OSError, RuntimeError) as err:
        return Reply(lost=one_line(err))
    try:
        return Reply(measured(remote, replace(job, copies=1)))
    except Exception as err:  # TVM raises plain errors, for a lost server too
        if isinstance(err, RPCSessionTimeoutError) or time.monotonic() - began >= limit:
            return Reply(failed=f"it did not end within {limit:g} s")
        if remote.is_alive():
            return Reply(failed=one_line(err))
        return Reply(lost=one_line(err), at_risk=remote.is_running)
