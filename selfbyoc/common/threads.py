"""The process's cores, and TVM's thread pool on all of them.

TVM takes half of the hardware threads, for it assumes two to a core, and rewrites the caller's
affinity. It reads its variables when a thread first runs in parallel, so they are set when this
package is imported, unless the user set them.
"""

from __future__ import annotations

import os

from ..errors import InputError

# Times that an idle thread of TVM 0.27 looks for work before it sleeps: some 13 ms, 0.2 s by TVM's
# default, for which all cores are busy after a call, and the process does not end. MobileNetV2 on
# two threads of Zen 3: as fast with either count call after call; at 30 calls a second 45 ms of
# processor time a call, 64 by TVM's (Nov 2026).
SPINS = 20_000


def core_count() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def configure() -> None:
    """Set the thread count from the process's affinity, leave the affinity alone, and let idle
    threads sleep early.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("TVM_NUM_THREADS", str(core_count()))
    os.environ.setdefault("TVM_BIND_THREADS", "0")
    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", str(SPINS))


def count() -> int:
    """The threads that kernels started from this thread will use."""
    name = next((n for n in ("TVM_NUM_THREADS", "OMP_NUM_THREADS") if os.environ.get(n)), "")
    asked = os.environ.get(name, "").partition(",")[0].strip()  # OpenMP: a number for each level
    if name and not (asked.isdigit() and int(asked) > 0):
        raise InputError(f"{name}={os.environ[name]}: expected a number of threads from 1 on")
    return int(asked) if asked else core_count()
