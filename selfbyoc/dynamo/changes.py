"""Weights that are written without PyTorch counting it."""

from __future__ import annotations

import weakref
from typing import Any

from torch.autograd.graph import increment_version
from torch.optim.optimizer import register_optimizer_step_post_hook

holders: weakref.WeakSet[Any] = weakref.WeakSet()  # libraries; each has the weights that it `holds`


def _count(optimizer: Any, *_: Any) -> None:
    """After a step: `fused=True` leaves the counter of versions as it is (2.13)."""
    held = {id(tensor) for holder in list(holders) for tensor in holder.holds}
    stepped = [p for group in optimizer.param_groups for p in group["params"]]
    increment_version([p for p in stepped if id(p) in held])


register_optimizer_step_post_hook(_count)
