"""Seeded random weights that keep a network alive: nothing constant, nothing that ReLUs silence."""

from __future__ import annotations

import math
from typing import Any

# Pictures that batch norms take their statistics from. With four of 64x64 the last stages have 16
# pixels of each channel to measure: deep networks then multiply PyTorch's rounding by 1e6.
BATCH = 16


def reseeded(module: Any, inputs: tuple[Any, ...], seed: int = 0) -> Any:
    """The module in eval mode with new weights.

    As PyTorch makes them, the biases of many networks are zero and their scales one, and some
    (layer scale, the last batch norm of a block) begin at nearly nothing: a wrong channel or a
    lost operand would not show.
    """
    import torch

    torch.manual_seed(seed)
    module.eval()
    with torch.no_grad():
        for part in module.modules():
            _refill(torch, part)
        _calibrate(torch, module, inputs)
    return module


def _refill(torch: Any, part: Any) -> None:
    """The parameters that lie in this very module, not in one inside it."""
    fan_in = _fan_in(part)
    for name, values in part.named_parameters(recurse=False):
        if not values.is_floating_point():
            continue
        if values.ndim >= 2 and fan_in and "weight" in name:
            values.normal_(0, math.sqrt(_gain(torch, part) / fan_in))
        elif values.ndim == 1 and name in ("weight", "gamma", "scale"):
            values.normal_(1, 0.1)
        elif values.ndim >= 2 and max(values.shape) > 1 and not _is_table(torch, part):
            values.normal_(0, math.sqrt(1 / values.shape[-1]))
        else:
            values.normal_(0, 0.1)
    for name, values in part.named_buffers(recurse=False):
        if name == "running_mean":
            values.normal_(0, 0.1)
        elif name == "running_var":
            values.uniform_(0.5, 1.5)


def _fan_in(part: Any) -> int:
    """Terms of a sum with this module's weight; 0 where it is nothing of the kind."""
    if hasattr(part, "in_channels") and hasattr(part, "kernel_size"):
        size = part.kernel_size
        area = math.prod(size) if isinstance(size, tuple) else size * size
        return part.in_channels // getattr(part, "groups", 1) * area
    return getattr(part, "in_features", 0)


def _gain(torch: Any, part: Any) -> float:
    """He's for convolutions: what follows is mostly a ReLU, which halves the variance."""
    return 1.0 if isinstance(part, torch.nn.Linear) else 2.0


def _is_table(torch: Any, part: Any) -> bool:
    return isinstance(part, torch.nn.Embedding)


def _calibrate(torch: Any, module: Any, inputs: tuple[Any, ...]) -> None:
    """Batch norms measure what they see, then differ from it a little: else a deep network's
    values grow or vanish by powers of two a block.
    """
    kinds = torch.nn.modules.batchnorm._BatchNorm
    norms = [part for part in module.modules() if isinstance(part, kinds)]
    if not norms or len(inputs) != 1 or not inputs[0].is_floating_point():
        return
    for norm in norms:
        norm.momentum, _ = None, norm.train()
        norm.reset_running_stats()
    shape = (BATCH, *inputs[0].shape[1:])
    try:
        module(torch.randn(shape))
    finally:
        module.eval()
    for norm in norms:
        norm.running_mean.mul_(torch.empty_like(norm.running_mean).uniform_(0.8, 1.2))
        norm.running_var.mul_(torch.empty_like(norm.running_var).uniform_(0.8, 1.25))
