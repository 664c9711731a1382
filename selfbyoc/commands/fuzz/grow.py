"""The program of a number: the same seed and number always grow the same one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from . import compose, onnx_ops, shapes, spell, window_edits
from .edits import EDITS as OPS
from .edits import Types
from .infer import Invalid, infer
from .plant import with_plant
from .program import Program
from .targets import SHARE

_TRIES = 30
_CHANGES = (0, 1, 1, 1, 2, 2, 3, 4)
_PAIRS = 0.2  # of the programs are made of two
_PLANTED = 0.15  # have an attribute of TVM's at another value
EDITS: tuple[shapes.Edit, ...] = (
    *OPS, *shapes.EDITS, *window_edits.EDITS, spell.spell, spell.spell, compose.twice,
)  # fmt: skip


def grown(
    seeds: Sequence[Program],
    seed: int,
    number: int,
    onnx: bool = False,
    targets: Sequence[str] = (),
) -> Program:
    """One of the seeds, made small, joined to another one, and changed a few times; a part of them
    are for one of the `targets`.
    """
    found = _one(seeds, seed, number, onnx)
    rng = Random(f"target {seed} {number}")
    is_other = targets and rng.random() < SHARE
    return replace(found, target=rng.choice(targets)) if is_other else found


def _one(seeds: Sequence[Program], seed: int, number: int, onnx: bool) -> Program:
    for attempt in range(_TRIES):
        rng = Random(f"{seed} {number} {attempt}")
        found = _grown(seeds, rng, (*EDITS, *onnx_ops.EDITS) if onnx else EDITS)
        if found is None:
            continue
        found = replace(found, seed=rng.randrange(1 << 31), onnx=onnx)
        is_planted = not onnx and rng.random() < _PLANTED
        return (with_plant(found, rng) if is_planted else None) or found
    return replace(seeds[number % len(seeds)], seed=number, onnx=onnx)


def _grown(seeds: Sequence[Program], rng: Random, edits: Sequence[shapes.Edit]) -> Program | None:
    program = _small(seeds, rng)
    if program is None:
        return None
    if rng.random() < _PAIRS:
        other = _small(seeds, rng)
        if other is None:
            return None
        joined = compose.chained(program, other, rng) if rng.random() < 0.6 else None
        program = joined or compose.tied(program, other, rng)
    for _ in range(rng.choice(_CHANGES)):
        program = _changed(program, edits, rng) or program
    types = _types(program)
    return (
        program if types is not None and shapes.work(program, types) <= 4 * shapes.LIMIT else None
    )


def _small(seeds: Sequence[Program], rng: Random) -> Program | None:
    return shapes.fitted(rng.choice(seeds), rng)


def _changed(program: Program, edits: Sequence[shapes.Edit], rng: Random) -> Program | None:
    """One change that leaves a program with a meaning; None if eight in turn do not."""
    types = infer(program)
    for _ in range(8):
        new = _tried(rng.choice(edits), program, types, rng)
        if new is not None and _types(new) is not None and new.kinds():
            return new
    return None


def _tried(
    edit: Callable[..., Program | None], program: Program, types: Types, rng: Random
) -> Program | None:
    try:
        return edit(program, types, rng)
    except (RecursionError, Invalid):  # the change made a circle
        return None


def _types(program: Program) -> Types | None:
    try:
        return infer(program)
    except Invalid:
        return None


def twin(program: Program) -> Program | None:
    """The same program in other words, which must match the same and give the same."""
    if program.plant is not None:
        return None
    rng = Random(f"twin {program.seed}")
    found = spell.respelled(program, infer(program), rng, spell.TWINS)
    return found if found is not None and _types(found) is not None else None
