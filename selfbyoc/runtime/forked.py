"""Calls in a process that was forked from one that ran kernels.

TVM's pool of threads belongs to the thread that called. Of a fork only that thread lives on, and it
waits for the others for ever. In such a thread our calls run on another one, which TVM gives a pool
of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class _Here(threading.local):
    """What stands in for this thread, which lost its pool; None for a thread that did not."""

    def __init__(self) -> None:
        self.stand_in: ThreadPoolExecutor | None = None


_here = _Here()


def _lost() -> None:
    _here.stand_in = ThreadPoolExecutor(1, thread_name_prefix="selfbyoc-forked")


os.register_at_fork(after_in_child=_lost)


def run(call: Callable[..., T], *arguments: object) -> T:
    """Call it here, or where there is a pool."""
    stand_in = _here.stand_in
    return call(*arguments) if stand_in is None else stand_in.submit(call, *arguments).result()
