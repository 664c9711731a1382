"""What a library returns, as PyTorch would: the same values, compared once, with PyTorch's strides,
in memory that belongs to the caller and is shared by the results that share it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch

from ...errors import InputError
from ...tvm.types import NDArray
from .storage import Layout, views

# What a library may differ by, of the largest value: rounding, not another meaning.
_ALLOWED = {torch.float16: 0.05, torch.bfloat16: 0.2}
_FLOAT, _INTEGER = 1e-3, 0.02  # of integers, how many may differ: places of equal values


class Results:
    """How a graph's results are made of its library's."""

    def __init__(
        self,
        expected: Sequence[torch.Tensor | int],
        calls: Sequence[Sequence[NDArray]],
        live: Sequence[torch.Tensor],
        allowed: float | None,
    ) -> None:
        wanted = [e for e in expected if isinstance(e, torch.Tensor)]
        first, second = (_tensors(found) for found in calls)
        check(first, wanted, allowed)
        self._others = [(n, e) for n, e in enumerate(expected) if not isinstance(e, torch.Tensor)]
        self._views = views(wanted)
        self._strides = [_other_strides(f, w) for f, w in zip(first, wanted, strict=True)]
        self._are_shared = _shared(first, second, live)
        self._are_tensors = all(isinstance(r, torch.Tensor) for r in calls[0])

    @property
    def has_views(self) -> bool:
        """Whether a result is a view of another one."""
        return bool(self._views)

    @cached_property
    def are_plain(self) -> bool:
        """Whether a library's results are the graph's."""
        is_changed = any(self._are_shared) or any(s is not None for s in self._strides)
        return self._are_tensors and not (is_changed or self._others or self._views)

    def like(self, expected: Sequence[int | Layout]) -> Results:
        """The same for other sizes, where no result is a view; shape and strides of each tensor, or
        the number.
        """
        other: Results = object.__new__(Results)
        tensors = [e for e in expected if isinstance(e, tuple)]
        other._others = [(n, e) for n, e in enumerate(expected) if not isinstance(e, tuple)]
        other._strides = [
            None if _dense(shape) == strides else strides for shape, strides in tensors
        ]
        other._views, other._are_shared = [], self._are_shared
        other._are_tensors = self._are_tensors
        return other

    def of(self, found: Sequence[NDArray]) -> list[torch.Tensor | int]:
        """The graph's results."""
        done = [
            tensor if strides is None and not is_shared else with_strides(tensor, strides)
            for tensor, strides, is_shared in zip(
                _tensors(found), self._strides, self._are_shared, strict=True
            )
        ]
        for view in self._views:
            done[view.place] = view.of(done[view.base])
        for place, value in self._others:  # in order, so that each comes to its place
            done.insert(place, value)
        return done


def rounding(module: torch.fx.GraphModule) -> float:
    """What floats of a graph's results may differ by, of the largest: by its coarsest type, as that
    of a product under autocast.
    """
    values = [node.meta.get("val") for node in module.graph.nodes]
    dtypes = {value.dtype for value in values if isinstance(value, torch.Tensor)}
    return max((_ALLOWED.get(dtype, _FLOAT) for dtype in dtypes), default=_FLOAT)


def check(
    found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], allowed: float | None
) -> None:
    """InputError where a result is of another type than PyTorch's, or differs by more than is
    allowed; by any number where that is None.
    """
    if len(found) != len(wanted):
        raise InputError(f"TVM's importer makes {len(found)} results, expected {len(wanted)}")
    for number, (f, w) in enumerate(zip(found, wanted, strict=True)):
        types = [f"{t.dtype}{list(t.shape)} on {t.device}" for t in (f, w)]
        if types[0] != types[1]:
            raise InputError(f"result {number} is {types[0]} by TVM, {types[1]} by PyTorch")
        if allowed is not None and not _agree(f, w, allowed):
            raise InputError(f"result {number} has other values by TVM than by PyTorch")


def _agree(found: torch.Tensor, wanted: torch.Tensor, allowed: float) -> bool:
    if not wanted.dtype.is_floating_point:
        return int((found != wanted).sum()) <= _INTEGER * wanted.numel()
    found, wanted = found.double(), wanted.double()
    finite = wanted.isfinite()
    largest = float(wanted[finite].abs().max()) if bool(finite.any()) else 0.0
    return torch.allclose(found, wanted, rtol=0, atol=allowed * largest, equal_nan=True)


def _tensors(found: Sequence[NDArray]) -> list[torch.Tensor]:
    """Without inputs of PyTorch, TVM returns its own tensors."""
    return [f if isinstance(f, torch.Tensor) else torch.from_dlpack(f) for f in found]


def _other_strides(found: torch.Tensor, wanted: torch.Tensor) -> tuple[int, ...] | None:
    """PyTorch's, where they are others."""
    return None if found.stride() == wanted.stride() else wanted.stride()


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides that PyTorch gives a new tensor."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def with_strides(tensor: torch.Tensor, strides: Sequence[int] | None) -> torch.Tensor:
    """A copy with these strides; along those of 0 there is one element."""
    if strides is None:
        return tensor.clone()
    once = tensor
    for axis, stride in enumerate(strides):
        if stride == 0 and tensor.shape[axis] > 1:
            once = once.narrow(axis, 0, 1)
    return (
        torch.empty_strided(once.shape, strides, dtype=tensor.dtype)
        .copy_(once)
        .expand(tensor.shape)
    )


def _shared(
    first: Sequence[torch.Tensor], second: Sequence[torch.Tensor], live: Sequence[torch.Tensor]
) -> list[bool]:
    """Which results lie in an input, in a constant of the library, or where another one lies."""
    taken = {t.data_ptr() for t in (*live, *second)}
    found = []
    for tensor in first:
        found.append(tensor.data_ptr() in taken)
        taken.add(tensor.data_ptr())
    return found
