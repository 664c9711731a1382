"""Modules around others: one tuple of tensors in, one out. Imported where PyTorch is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class Named(torch.nn.Module):
    """Arguments by name, and a tuple of those outputs that are tensors."""

    def __init__(self, inner: Any, names: Sequence[str] = (), **options: Any) -> None:
        super().__init__()
        self.inner, self._names, self._options = inner, names, options

    def forward(self, *inputs: Any) -> Any:
        """Its outputs in order."""
        if self._names:
            given = dict(zip(self._names, inputs, strict=True))
            found = self.inner(**given, **self._options)
        else:
            found = self.inner(*inputs, **self._options)
        values = found.values() if hasattr(found, "values") else found
        return tuple(value for value in values if isinstance(value, torch.Tensor))


class Detector(torch.nn.Module):
    """Backbone, then its head: of one-stage detectors the scores and boxes of every place, of
    two-stage ones those of the region proposals.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.backbone = model.backbone
        self.head = model.rpn.head if hasattr(model, "rpn") else model.head

    def forward(self, x: Any) -> Any:
        """Scores and boxes."""
        levels = self.backbone(x)
        levels = list(levels.values()) if isinstance(levels, dict) else [levels]
        found = self.head(levels)
        if isinstance(found, dict):
            return tuple(found.values())
        return tuple(value for part in found for value in part)
