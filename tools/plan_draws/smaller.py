"""A case made as small as it stays showing its fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from selfbyoc.commands.fuzz.infer import Invalid
from selfbyoc.commands.fuzz.shrink import smaller as smaller_programs

from . import machines
from .cases import BUILT, Case

TRIES = 400


def shrunk(case: Case, has_fault: Callable[[Case], bool], tries: int = TRIES) -> Case:
    """The smallest case found that has it."""
    left, progress = tries, True
    while progress and left > 0:
        progress = False
        for other in _smaller(case):
            left -= 1
            if left <= 0:
                break
            if _shows(other, has_fault):
                case, progress = other, True
                break
    return case


def _shows(case: Case, has_fault: Callable[[Case], bool]) -> bool:
    try:
        return has_fault(case)
    except Invalid:
        return False


def _smaller(case: Case) -> Iterator[Case]:
    """One step smaller: what is decided, the machine, the program."""
    for name in case.told:
        yield replace(case, told={n: v for n, v in case.told.items() if n != name})
    if case.how != BUILT and not case.told:
        yield replace(case, how=BUILT, sizes=())
    if case.reader is not None:
        yield replace(case, reader=None)
    for name in case.constants:
        yield replace(case, constants=tuple(n for n in case.constants if n != name))
    plain = replace(machines.usual(case.cpu), cores=case.machine.cores)
    if case.machine != plain:
        yield replace(case, machine=plain)
    for cores in (1, 2, 4):
        if cores < case.machine.cores:
            yield replace(case, machine=replace(case.machine, cores=cores))
    for program in smaller_programs(case.program):
        yield replace(case, program=program)
