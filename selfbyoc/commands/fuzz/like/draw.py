"""The mutant of a number: the same files, seed and number always give the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from ..targets import SHARE
from .cut import cut
from .mutant import Mutant
from .mutations import DRAWN, Change, mutated
from .source import Source

if TYPE_CHECKING:
    import onnx

TRIES = 40  # of one number, until one is valid
_CHANGES = (0, 1, 1, 2, 2, 3, 3, 4)
_REDRAWN = 8  # of one change


@dataclass(frozen=True)
class Draw:
    """What a mutant is drawn from."""

    sources: Sequence[Source]
    seed: int
    number: int
    targets: Sequence[str] = ()


@dataclass(frozen=True)
class Drawn:
    """A mutant, unless ONNX's checks refuse the cut; and how many changes they refused."""

    mutant: Mutant | None
    refused: int


def drawn(draw: Draw, attempt: int) -> Drawn:
    """One attempt at the mutant of a number. Whether ONNX Runtime takes it is not asked."""
    rng = Random(f"like {draw.seed} {draw.number} {attempt}")
    source = draw.sources[draw.number % len(draw.sources)]
    found = cut(source, rng)
    if found is None:
        return Drawn(None, 1)
    model, ranges, told = found
    changes, refused, before = [], 0, model.SerializeToString()
    for _ in range(rng.choice(_CHANGES)):
        change, more = _changed(model, rng)
        refused += more
        if change is not None:
            model = change.model
            changes.append(change)
    target = rng.choice(draw.targets) if draw.targets and rng.random() < SHARE else ""
    mutant = Mutant(
        model.SerializeToString(), ranges, rng.randrange(1 << 31),
        (told, *(c.told for c in changes)), target, before,
        tuple((c.kind, c.seed) for c in changes),
    )  # fmt: skip
    return Drawn(mutant, refused)


def _changed(model: onnx.ModelProto, rng: Random) -> tuple[Change | None, int]:
    """A change that ONNX's checks take, and how many before it they refused."""
    refused = 0
    for _ in range(_REDRAWN):
        found = mutated(model, rng.choice(DRAWN), rng.randrange(1 << 31))
        if found is not None and found.model is not None:
            return found, refused
        refused += found is not None
    return None, refused
