"""Sentences as vectors, as the models of sentence-transformers: the mean of all tokens that the
mask shows, of length 1.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class Pooled(nn.Module):
    """A transformer and the mean of what it returns."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        found = self.inner(input_ids=input_ids, attention_mask=attention_mask)[0]
        shown = attention_mask.unsqueeze(-1).expand(found.size()).float()
        mean = (found * shown).sum(1) / shown.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, p=2, dim=1)
