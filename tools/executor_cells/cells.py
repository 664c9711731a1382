"""The cells: each a program in one way to build it. What a cell gave is data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .calls import CALLS, OURS
from .generation import VARIANTS, roads
from .programs import PROGRAMS

LEVELS = (0, 1, 2, 3)
HOST, GENERIC = "host", "llvm"
# How what was built is called: from memory; exported and loaded; the same by another process, which
# does not have this package.
MEMORY, FILE, PROCESS = "memory", "file", "process"
# TVM 0.17 calls external functions of an AOT library by their symbol, which only a linker resolves.
USUAL = {"aot": FILE}
EXPORTED = "neighbours before, between and after"  # the program that is exported
BUILT = "two results, a kernel each"  # the program that is built in all ways


@dataclass(frozen=True)
class Cell:
    """A program, and a way to build and call it."""

    program: str
    executor: str
    level: int = 3
    target: str = HOST
    way: str = MEMORY
    variant: str = ""
    call: str = ""


@dataclass(frozen=True)
class Outcome:
    """right, wrong, refused or crash; what was said; the outcome of TVM alone where ours is not
    right.
    """

    kind: str
    says: str = ""
    alone: str = ""
    alone_says: str = ""

    def to_json(self) -> dict[str, Any]:
        """As data, without what is empty."""
        return {name: value for name, value in asdict(self).items() if value}


def levels() -> Iterator[Cell]:
    """Every program by every executor at every level, and for a target that names no CPU."""
    for program in PROGRAMS:
        for executor in roads.EXECUTORS:
            way = USUAL.get(executor, MEMORY)
            for level in LEVELS:
                yield Cell(program.name, executor, level, way=way)
            yield Cell(program.name, executor, target=GENERIC, way=way)


def ways() -> Iterator[Cell]:
    """Other ways to build and to call, of one program."""
    for executor in roads.EXECUTORS:
        for way in (MEMORY, FILE, PROCESS):
            yield Cell(EXPORTED, executor, way=way)
        for name, variant in VARIANTS.items():
            if executor in variant.executors:
                yield Cell(BUILT, executor, way=USUAL.get(executor, MEMORY), variant=name)


def calls() -> Iterator[Cell]:
    """Calls out of the ordinary, of TVM's executors and of ours."""
    for call in CALLS:
        for executor in (*roads.EXECUTORS, *OURS):
            yield Cell("", executor, call=call)


def cells() -> list[Cell]:
    """All of them, without doubles."""
    return list(dict.fromkeys([*levels(), *ways(), *calls()]))
