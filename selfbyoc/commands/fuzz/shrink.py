"""A program that shows a fault, made as small as it stays showing it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .infer import Invalid, Type, infer
from .judge import Finding
from .like.mutant import Mutant
from .program import CONSTANT, INPUT, ITEM, Draft, Program
from .shapes import at_places, everywhere, valid

Judged = Callable[[Any], "Finding | None"]
Steps = Callable[[Any], Iterator[Any]]


def shrunk(
    finding: Finding, judged: Judged, runs: int, seconds: float, steps: Steps | None = None
) -> Finding:
    """The smallest program found in so many runs or so much time that has the same fault; `steps`
    gives what is one step smaller, the largest steps first.
    """
    end = time.monotonic() + seconds
    steps = steps or _valid
    tried = {_text(finding.program)}
    best, left = finding, runs
    progress = True
    while progress and left > 0:
        progress = False
        for program in steps(best.program):
            if left <= 0 or time.monotonic() > end:
                return best
            if _text(program) in tried:
                continue
            tried.add(_text(program))
            left -= 1
            found = judged(program)
            if found is not None and found.is_like(best):
                best, progress = replace(found, number=finding.number), True
                break
    return best


def _text(program: Program | Mutant) -> str | bytes:
    """What two programs have in common that are one."""
    if isinstance(program, Program):
        return replace(program, grown=()).to_json()
    return bytes(program.model + program.target.encode())


def _valid(program: Program) -> Iterator[Program]:
    return filter(valid, smaller(program))


def smaller(program: Program) -> Iterator[Program]:
    """Programs that are one step smaller, the largest steps first."""
    try:
        types = infer(program)
    except Invalid:
        return
    if program.plant is not None:
        yield replace(program, plant=None)
    yield from _outputs(program, [len(t) == 1 for t in types])
    yield from _without_ops(program, types)
    yield from _plain_attributes(program)
    yield from _extents(program)
    yield from _plain_leaves(program)
    if program.target:
        yield replace(program, target="")
    if program.plant is not None:
        for index in range(program.plant.index):
            yield replace(program, plant=replace(program.plant, index=index))


def _outputs(program: Program, single: list[bool]) -> Iterator[Program]:
    """One output of several; an output that is computed earlier."""
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield _returning(program, [output])
        for n in range(len(program.outputs)):
            yield _returning(program, [o for m, o in enumerate(program.outputs) if m != n])
    for n, output in enumerate(program.outputs):
        for before in program.nodes[output].inputs:
            if single[before] and not program.nodes[before].is_leaf:
                others = list(program.outputs)
                others[n] = before
                yield _returning(program, others)


def _returning(program: Program, outputs: list[int]) -> Program:
    draft = Draft(program)
    draft.outputs = outputs
    return draft.done("")


def _without_ops(program: Program, types: list[tuple[Type, ...]]) -> Iterator[Program]:
    """An op's value as an input, or as one of the op's own inputs."""
    for index in reversed(range(len(program.nodes))):
        node = program.nodes[index]
        if node.is_leaf or len(types[index]) > 1:
            continue
        for before in node.inputs:
            if types[before] == types[index]:
                draft = Draft(program)
                draft.redirect(index, before)
                yield draft.done("")
        if index not in program.outputs and node.kind != ITEM:
            draft = Draft(program)
            shape, dtype = types[index][0]
            draft.redirect(index, draft.leaf(shape, dtype))
            yield draft.done("")


def _plain_attributes(program: Program) -> Iterator[Program]:
    for index, node in enumerate(program.nodes):
        for name in node.attrs:
            if node.is_leaf or name in ("index", "shape", "dtype", "axes"):
                continue
            draft = Draft(program)
            draft.change(index, attrs={n: v for n, v in node.attrs.items() if n != name})
            yield draft.done("")


def _extents(program: Program) -> Iterator[Program]:
    sizes = sorted({e for i in program.leaves() for e in program.nodes[i].shape if e > 1})
    for old in reversed(sizes):
        for new in sorted({1, 2, old // 2, old - 1}):
            if 0 < new < old:
                yield everywhere(program, old, new, "")
                yield from _alone(program, old, new)


def _alone(program: Program, old: int, new: int) -> Iterator[Program]:
    places = [
        (i, n)
        for i in program.leaves()
        for n, e in enumerate(program.nodes[i].shape)
        if e == old
    ]  # fmt: skip
    for first in range(len(places)):
        yield at_places(program, [places[first]], new, "")
        for second in range(first + 1, len(places)):
            yield at_places(program, [places[first], places[second]], new, "")


def _plain_leaves(program: Program) -> Iterator[Program]:
    """Constants as inputs, numbers without axes."""
    for index in program.leaves():
        node, draft = program.nodes[index], Draft(program)
        if node.kind != CONSTANT:
            continue
        if node.value is None:
            draft.change(index, kind=INPUT)
        elif node.shape:
            draft.change(index, shape=())
        else:
            continue
        yield draft.done("")
