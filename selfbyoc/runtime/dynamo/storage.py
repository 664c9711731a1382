"""Results that lie in one storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ...errors import InputError

Layout = tuple[tuple[int, ...], tuple[int, ...]]  # of a tensor: shape and strides


@dataclass(frozen=True)
class View:
    """The result at `place`, as it lies in the one at `base`."""

    place: int
    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def of(self, base: torch.Tensor) -> torch.Tensor:
        """The view into what the base is now."""
        return base.as_strided(self.shape, self.strides, base.storage_offset() + self.offset)


def views(results: Sequence[torch.Tensor]) -> list[View]:
    """Which of PyTorch's results are views of another one; InputError where they have elements in
    common and none holds them all.
    """
    found = []
    for group in _groups(results):
        base = next((n for n in group if all(_holds(results[n], results[m]) for m in group)), None)
        if base is not None:
            found += [_view(results, n, base) for n in group if n != base]
        elif _overlap([results[n] for n in group]):
            raise InputError(f"results {group} have a part of their memory in common")
    return found


def _groups(results: Sequence[torch.Tensor]) -> list[list[int]]:
    by_storage: dict[int, list[int]] = {}
    for place, tensor in enumerate(results):
        if tensor.numel():
            by_storage.setdefault(tensor.untyped_storage().data_ptr(), []).append(place)
    return [places for places in by_storage.values() if len(places) > 1]


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The first element and the one after the last, in the storage."""
    begin = tensor.storage_offset()
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return begin, begin + 1 + sum((extent - 1) * stride for extent, stride in steps)


def _holds(base: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a result fills its span, and the other one lies within."""
    (begin, end), (first, last) = _span(base), _span(other)
    is_filled = torch.ops.aten.is_non_overlapping_and_dense(base)
    return bool(is_filled and base.dtype == other.dtype and begin <= first and last <= end)


def _view(results: Sequence[torch.Tensor], place: int, base: int) -> View:
    tensor = results[place]
    offset = tensor.storage_offset() - results[base].storage_offset()
    return View(place, base, tuple(tensor.shape), tuple(tensor.stride()), offset)


def _overlap(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether an element belongs to two of them."""
    if len({t.dtype for t in tensors}) > 1:
        return True
    taken = torch.zeros(max(_span(t)[1] for t in tensors), dtype=torch.bool)
    for tensor in tensors:
        mine = taken.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        if bool(mine.any()):
            return True
        mine.fill_(True)
    return False
