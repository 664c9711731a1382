"""Several kernels at once: LLVM and TVM's passes run without Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from .. import host
from .._tvm import current_target

Made = TypeVar("Made")


def at_once(jobs: Sequence[Callable[[], Made]], threads: int | None = None) -> list[Made]:
    """What each job returns, in order; the first of them that raised, raises. Each finds the target
    and the context variables of the caller, a pass context of its own.
    """
    threads = min(len(jobs), host.cores() if threads is None else threads)
    if threads < 2:
        return [job() for job in jobs]
    target = current_target()

    def within(job: Callable[[], Made]) -> Made:
        if target is None:
            return job()
        with target:
            return job()

    pool = ThreadPoolExecutor(threads, thread_name_prefix="selfbyoc")
    try:
        return [f.result() for f in [pool.submit(copy_context().run, within, j) for j in jobs]]
    finally:
        pool.shutdown(cancel_futures=True)
