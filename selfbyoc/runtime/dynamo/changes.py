"""Weights that are written without PyTorch counting it."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.graph import increment_version
from torch.optim.optimizer import register_optimizer_step_post_hook

holders: weakref.WeakSet[Any] = weakref.WeakSet()  # libraries; each has the weights that it `holds`
_LARGEST = 1 << 16  # bytes of what may be a norm's running statistics


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
        if not isinstance(weight, torch.nn.Parameter)
        and weight.ndim == 1
        and weight.is_floating_point()
        and weight.is_contiguous()
        and 0 < weight.nbytes <= _LARGEST
    ]


def contents(weights: Sequence[tuple[torch.Tensor, int]]) -> list[bytes]:
    """What these hold now, 0.4 microseconds each; their memory must be that of before."""
    return [ctypes.string_at(weight.data_ptr(), size) for weight, size in weights]
