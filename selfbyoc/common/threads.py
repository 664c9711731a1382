"""The process's cores, and TVM's thread pool on all of them.

TVM takes half of the hardware threads, for it assumes two to a core, and rewrites the caller's
affinity. It reads both variables when a thread first runs in parallel, so they are set when this
package is imported, unless the user set them.
"""

from __future__ import annotations

import os

from ..errors import InputError


def core_count() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def configure() -> None:
    """Set the thread count from the process's affinity, and leave the affinity alone."""
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("TVM_NUM_THREADS", str(core_count()))
    os.environ.setdefault("TVM_BIND_THREADS", "0")


def count() -> int:
    """The threads that kernels started from this thread will use."""
    name = next((n for n in ("TVM_NUM_THREADS", "OMP_NUM_THREADS") if os.environ.get(n)), "")
    asked = os.environ.get(name, "").partition(",")[0].strip()  # OpenMP: a number for each level
    if name and not (asked.isdigit() and int(asked) > 0):
        raise InputError(f"{name}={os.environ[name]}: expected a number of threads from 1 on")
    return int(asked) if asked else core_count()
