"""A case's program with other sizes and attributes, its ops and constants as they are."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from selfbyoc.commands.fuzz.program import Program

from .drawing import Drawing
from .rules import RULES

OTHER = {
    "float32": ("float64", "float16", "int8"), "int8": ("uint8", "int16"), "int32": ("int64",),
    "float16": ("bfloat16",),
}  # fmt: skip


def _other_dtypes(program: Program, rng: Random) -> Program:
    """The same, or with other dtypes: of an argument, or of all of a dtype."""
    if rng.random() < 0.9:
        return program
    old = rng.choice([n.dtype for n in program.nodes if n.is_leaf])
    new, most = rng.choice(OTHER.get(old, (old,))), rng.choice((1, 99))
    leaves = [i for i, n in enumerate(program.nodes) if n.is_leaf and n.dtype == old][:most]
    nodes = [replace(n, dtype=new) if i in leaves else n for i, n in enumerate(program.nodes)]
    return replace(program, nodes=tuple(nodes))


def drawn(program: Program, rng: Random) -> Program:
    """A program of the same ops on other types, or Invalid."""
    drawing = Drawing(_other_dtypes(program, rng), rng, RULES)
    for output in program.outputs:
        drawing.give(output)
    return replace(program, nodes=tuple(drawing.nodes), grown=program.grown[:1])
