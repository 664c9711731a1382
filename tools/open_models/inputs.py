"""Inputs of a model at some sizes, seeded, and its sizes in the table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import catalogue as c
from .catalogue import BATCH, HEIGHT, IMAGE_WIDTH, SEQUENCE, Model

# Of each open size. Sides of images are multiples of 32, which a detector needs.
SIZES: Mapping[str, Sequence[int]] = {
    BATCH: (1, 2, 3, 5), SEQUENCE: (1, 2, 7, 33, 128), HEIGHT: (64, 96, 160),
    IMAGE_WIDTH: (64, 128, 224),
}  # fmt: skip
_CLOSED = {BATCH: 1, SEQUENCE: 11, HEIGHT: c.SIDE, IMAGE_WIDTH: c.SIDE}
At = Mapping[str, int]


def points(model: Model, opened: Sequence[str]) -> Iterator[At]:
    """Every choice of sizes to compare at."""
    sizes = [[n for n in SIZES[o] if o != SEQUENCE or n <= model.longest] for o in opened]
    for numbers in itertools.product(*sizes):
        yield dict(zip(opened, numbers, strict=True))


def inputs(model: Model, at: At) -> Mapping[str, Any]:
    """By name; of a mask the last tokens of the last sentence are hidden."""
    import torch

    batch, length, height, width = (at.get(o, n) for o, n in _CLOSED.items())
    drawn = torch.Generator().manual_seed(31 * length + batch)
    if model.takes == c.IMAGE:
        return {"image": torch.randn(batch, 3, height, width, generator=drawn)}
    if model.takes == c.SOUND:
        return {"sound": torch.randn(batch, 80, 2 * c.FRAMES, generator=drawn)}
    ids = torch.randint(3, c.WORDS, (batch, length), generator=drawn)
    if model.takes == c.STATES:
        states = torch.randn(batch, c.FRAMES, c.WIDTH, generator=drawn)
        return {"input_ids": ids, "encoder_hidden_states": states}
    mask = torch.ones(batch, length, dtype=torch.int64)
    if length > 2:
        mask[-1, -(length // 3) :] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    if model.takes == c.MASKED:
        return given
    assert model.takes == c.TYPED
    kinds = torch.randint(0, 2, (batch, length), generator=drawn)
    return {**given, "token_type_ids": kinds}
