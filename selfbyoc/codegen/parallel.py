"""Several kernels at once: LLVM and TVM's passes run without Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from ..common.threads import core_count
from ..tvm import current_target

Made = TypeVar("Made")


def at_once(
    jobs: Sequence[Callable[[], Made]],
    threads: int | None = None,
    length: Callable[[int], float] = lambda place: 0,
) -> list[Made]:
    """What each job returns, in order; the first of them that raised, raises. Each finds the target
    and the context variables of the caller, a pass context of its own. Begun is the job of the
    largest `length` first, so that no thread ends with a long one by itself.
    """
    threads = min(len(jobs), core_count() if threads is None else threads)
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
        places = sorted(range(len(jobs)), key=lambda place: -length(place))
        begun = {place: pool.submit(copy_context().run, within, jobs[place]) for place in places}
        return [begun[place].result() for place in range(len(jobs))]
    finally:
        pool.shutdown(cancel_futures=True)
