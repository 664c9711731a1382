"""Two programs as one: after one another, tied together, or twice the same with other constants."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

from ...ops.vocabulary import KINDS
from .infer import Type, infer
from .program import CONSTANT, INPUT, Draft, Program
from .shapes import resized

Types = list[tuple[Type, ...]]


def chained(first: Program, second: Program, rng: Random) -> Program | None:
    """The second reads what the first returns, at one of its inputs."""
    output = rng.choice(first.outputs)
    shape, dtype = infer(first)[output][0]
    leaves = [
        i for i in second.leaves()
        if second.nodes[i].kind == INPUT and second.nodes[i].dtype == dtype
    ]  # fmt: skip
    rng.shuffle(leaves)
    for leaf in leaves:
        fitting = _with_leaf(second, leaf, shape, rng)
        if fitting is not None:
            return _joined(first, fitting[0], output, fitting[1])
    return None


def _with_leaf(
    program: Program, leaf: int, shape: tuple[int, ...], rng: Random
) -> tuple[Program, int] | None:
    """The program with a leaf of this shape, and where the leaf is; other leaves go along."""
    place = program.leaves().index(leaf)
    have = program.nodes[leaf].shape
    if len(have) != len(shape):
        return None
    for axis, (old, new) in enumerate(zip(have, shape, strict=True)):
        if old == new:
            continue
        other = resized(program, program.leaves()[place], axis, new, rng)
        if other is None:
            return None
        program = other
        if len(program.nodes[program.leaves()[place]].shape) != len(shape):
            return None  # a number that is written on the left of its op came before it
    leaf = program.leaves()[place]
    return (program, leaf) if program.nodes[leaf].shape == shape else None


def _joined(first: Program, second: Program, output: int, leaf: int) -> Program:
    draft = Draft(first)
    moved = draft.append(second)
    draft.redirect(moved[leaf], output)
    others = [o for o in first.outputs if o != output]
    draft.outputs = [*others, *(moved[o] if o != leaf else output for o in second.outputs)]
    return draft.done(f"then {second.grown[0]}")


def tied(first: Program, second: Program, rng: Random) -> Program:
    """Both, on one input where that fits; their results added, concatenated or both returned."""
    draft = Draft(first)
    moved = draft.append(second)
    pairs = [
        (i, moved[j])
        for i in first.leaves()
        for j in second.leaves()
        if first.nodes[i] == second.nodes[j] and first.nodes[i].value is None
    ]
    if pairs and rng.random() < 0.8:
        mine, other = rng.choice(pairs)
        draft.redirect(other, mine)
    ours, theirs = first.outputs[0], moved[second.outputs[0]]
    mine_type, other_type = infer(first)[ours][0], infer(second)[second.outputs[0]][0]
    rest = [*first.outputs[1:], *(moved[o] for o in second.outputs[1:])]
    how = rng.choice(("add", "concatenate", "both"))
    if how == "both" or mine_type != other_type:
        draft.outputs = [ours, theirs, *rest]
    else:
        attrs: dict[str, Any] = {"axis": 1} if how == "concatenate" else {}
        draft.outputs = [draft.op(how, ours, theirs, **attrs), *rest]
    return draft.done(f"{how} {second.grown[0]}")


def twice(program: Program, types: Types, rng: Random) -> Program | None:
    """The same again with other constants and numbers, on the same inputs or after it."""
    again = _other_numbers(program, rng)
    draft = Draft(program)
    moved = draft.append(again)
    inputs = [i for i in program.leaves() if program.nodes[i].kind == INPUT]
    if rng.random() < 0.7:
        for leaf in inputs:
            draft.redirect(moved[leaf], leaf)
    first = program.outputs[0]
    after = [i for i in inputs if types[i] == types[first]]
    if after and rng.random() < 0.5:
        draft.redirect(moved[after[0]], first)
        if not math.prod(types[first][0][0]) or after[0] in program.outputs:
            return None
        draft.outputs = [moved[o] for o in program.outputs]
    elif rng.random() < 0.5:
        draft.outputs = [draft.op("add", first, moved[first]), *program.outputs[1:]]
    else:
        draft.outputs = [*program.outputs, *(moved[o] for o in program.outputs)]
    return draft.done("twice, with other numbers")


_NUMBERS = {"epsilon": (1e-5, 1e-3, 0.5), "a_min": (0.0, -1.0), "a_max": (6.0, 1.0, 3.0),
            "alpha": (0.01, 0.2), "beta": (0.75, 0.5)}  # fmt: skip


def _other_numbers(program: Program, rng: Random) -> Program:
    draft = Draft(program)
    for index, node in enumerate(program.nodes):
        if node.kind == CONSTANT and node.value is not None and node.dtype.startswith("float"):
            draft.change(index, value=rng.choice((node.value, node.value * 2, 0.25)))
        known = [name for name in _NUMBERS if name in _attributes(node.kind)]
        if known and not node.is_leaf and rng.random() < 0.7:
            name = rng.choice(known)
            attrs = {**node.attrs, name: rng.choice(_NUMBERS[name])}
            draft.change(index, attrs=attrs)
    return replace(program, nodes=tuple(draft.nodes))


def _attributes(kind: str) -> tuple[str, ...]:
    return tuple(KINDS[kind].attrs) if kind in KINDS else ()
