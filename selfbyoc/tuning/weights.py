"""Where a kernel finds its weights: in memory, if all of the model's do not fit the last cache.

A kernel that is called over and over finds them in the cache, and the decisions that hide the way
from memory look useless. So it is timed with as many copies of them as make it forget the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ..codegen.external import packed_params
from ..machine import host
from .tasks import Task

_CACHE = 32 << 20  # of a system that does not tell its own
_MOST = 64  # copies: smaller weights take no time from wherever they come


def positions(task: Task) -> tuple[int, ...]:
    """The parameters that are weights: those that are packed ahead of time."""
    return tuple(sorted(packed_params(task.source)))


def weight_bytes(task: Task) -> int:
    """Bytes of one call's weights, as the model holds them."""
    inputs = task.source.graph.inputs
    sizes = ((math.prod(inputs[i].shape), inputs[i].dtype) for i in positions(task))
    return sum(count * np.dtype(dtype).itemsize for count, dtype in sizes)


def from_memory(tasks: Iterable[Task]) -> bool:
    """Whether a run of the model has read so much since that a kernel's weights are gone."""
    return sum(t.weight * weight_bytes(t) for t in tasks) > _last_cache() / 2


def copies(task: Task) -> int:
    """How many sets of its weights do not fit the last cache together."""
    size = weight_bytes(task)
    return min(_MOST, 1 + math.ceil(_last_cache() / size)) if size else 1


def _last_cache() -> int:
    return max(host.cache_bytes().values(), default=_CACHE)
