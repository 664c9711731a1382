"""Which size of a model is open, its inputs at each, and the program that PyTorch exports of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .language import VOCABULARY
from .model import Made
from .trial import exported

BATCH, SEQUENCE = "batch", "sequence"
SIZES = (1, 2, 7, 33, 128)  # that are compared
LONGEST = 512  # a sequence; most tables of positions have as many
_EXAMPLE = {BATCH: 2, SEQUENCE: 11}  # that PyTorch sees; of one alone it would make a constant


class NotOpen(Exception):
    """PyTorch cannot export the model with this size open."""


def open_size(made: Made) -> str:
    """The sequence of text, the batch of all else."""
    return SEQUENCE if any(map(_is_text, made.inputs)) else BATCH


def _is_text(given: Any) -> bool:
    return given.ndim == 2 and not given.is_floating_point()


def inputs_at(made: Made, which: str, size: int) -> tuple[Any, ...]:
    """Of this size. Words are drawn anew, pictures are the first ones of the largest batch."""
    if which == BATCH:
        return tuple(_pictures(given, size) for given in made.inputs)
    return tuple(_words(given, size, place) for place, given in enumerate(made.inputs))


def _pictures(given: Any, size: int) -> Any:
    import torch

    drawn = torch.Generator().manual_seed(7)
    return torch.randn(SIZES[-1], *given.shape[1:], generator=drawn)[:size].contiguous()


def _words(given: Any, size: int, place: int) -> Any:
    """Of a mask the last third is hidden; what is no text stays."""
    import torch

    if not _is_text(given):
        return given
    if int(given.max()) == 1:
        return (torch.arange(size) < size - size // 3).long()[None]
    drawn = torch.Generator().manual_seed(1000 * place + size)
    return torch.randint(3, VOCABULARY, (1, size), generator=drawn)


def most_of(made: Made, which: str) -> int:
    """The largest size that the module itself takes: a table of positions ends somewhere."""
    if which == BATCH:
        return SIZES[-1]
    return _last(lambda size: _takes(made, which, size), LONGEST)


def _last(fits: Callable[[int], bool], most: int) -> int:
    """The last number up to `most` that fits, where all up to it do; 0 for none."""
    if fits(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _takes(made: Made, which: str, size: int) -> bool:
    import torch

    try:
        with torch.no_grad():
            made.module(*inputs_at(made, which, size))
    except (RuntimeError, ValueError, IndexError):  # PyTorch's ways to say no
        return False
    return True


def open_program(made: Made, which: str, most: int) -> Any:
    """The module by torch.export with this size open. Raises NotOpen with PyTorch's words."""
    import torch

    size = torch.export.Dim(which, min=1, max=most)
    inputs = inputs_at(made, which, _EXAMPLE[which])
    if which == BATCH:
        axes: Any = tuple({0: size} for _ in inputs)
    else:
        axes = tuple({1: size} if _is_text(given) else None for given in inputs)
    if _is_variadic(made.module):  # its inputs are one argument
        axes = (axes,)
    try:
        return exported(Made(made.module, inputs), axes)
    except Exception as err:  # of many kinds: PyTorch traces the module's own code
        raise NotOpen(_told(str(err), type(err).__name__)) from err


def _is_variadic(module: Any) -> bool:
    kinds = [given.kind for given in inspect.signature(module.forward).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds


def _told(text: str, kind: str) -> str:
    """The first thing that stands in the way; before come advice and the name of the size."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    told = next((line for line in lines if line.startswith("- ")), lines[0])
    return f"{kind}: {told.removeprefix('- ')}"[:300]
