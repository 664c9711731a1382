"""Weights that are written without PyTorch counting it."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import increment_version
from torch.optim.optimizer import register_optimizer_step_post_hook

holders: weakref.WeakSet[Any] = weakref.WeakSet()  # libraries; each has the weights that it `holds`
_LARGEST = 1 << 16  # bytes of what may be a norm's running statistics
_WORD = 8
_MOST, _FEW = 8, 256  # words of a weight, and of all weights unless there are more


def _count(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """After a step: `fused=True` leaves the counter of versions as it is (2.13)."""
    held = {id(tensor) for holder in list(holders) for tensor in holder.holds}
    stepped = [p for group in optimizer.param_groups for p in group["params"]]
    increment_version([p for p in stepped if id(p) in held])


register_optimizer_step_post_hook(_count)


def written_uncounted(weights: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, int]]:
    """Those that are compared by what they hold, with their bytes: a batch norm in training writes
    its running statistics and leaves their counter of versions as it is.
    """
    return [
        (weight, weight.nbytes)
        for weight in weights
        if not (isinstance(weight, torch.nn.Parameter) and weight.nbytes >= 2 * _WORD)
        and weight.ndim <= 1
        and weight.is_floating_point()
        and weight.is_contiguous()
        and 0 < weight.nbytes <= _LARGEST
    ]


def contents(weights: Sequence[tuple[torch.Tensor, int]]) -> list[bytes]:
    """What these hold now, 0.4 microseconds each; their memory must be that of before."""
    return [ctypes.string_at(weight.data_ptr(), size) for weight, size in weights]


class _Memory:
    """All memory from its second word on, to NumPy: one `take` reads words anywhere in it within a
    microsecond, where a look at each weight takes 50 nanoseconds.
    """

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": (1 << 46,), "typestr": "<u8", "data": (_WORD, False), "version": 3}


_memory = np.asarray(_Memory())


class Samples:
    """Some words of each weight: what writes `weight.data` is not counted, and changes all of it
    where an adapter is merged into it.
    """

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        each = min(_MOST, max(1, _FEW // max(1, len(weights))))
        places = [place for weight in weights for place in _words(weight, each)]
        self._places = np.array(places, dtype=np.intp)
        self._were = self._now()

    def are_other(self) -> bool:
        """Whether one is another than before; the weights' memory must be that of before."""
        return self._now() != self._were

    def _now(self) -> bytes:
        return _memory.take(self._places, mode="wrap").tobytes() if len(self._places) else b""


def _words(weight: torch.Tensor, number: int) -> list[int]:
    """Places in `_memory` that lie in a weight, evenly."""
    begin = -(-weight.data_ptr() // _WORD)
    end = (weight.data_ptr() + weight.nbytes) // _WORD
    if begin >= end or not torch.ops.aten.is_non_overlapping_and_dense(weight):
        return []
    step = max(1, (end - begin) // number)
    return [place - 1 for place in range(begin, end, step)][:number]
