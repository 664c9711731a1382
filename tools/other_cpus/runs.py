"""Every built-in composite on every CPU: does it compile, and is it right where it can be run?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import selfbyoc
from selfbyoc import Case, Composite
from selfbyoc.analysis.verify.checks import Comparison, Plan
from selfbyoc.analysis.verify.records import PASSED
from selfbyoc.analysis.verify.run import Runner
from selfbyoc.analysis.verify.subjects import Subject
from selfbyoc.analysis.verify.verification import subjects_of
from selfbyoc.codegen.cache.kernels import using
from selfbyoc.errors import SelfbyocError, one_line
from selfbyoc.machine import host
from selfbyoc.tvm import GENERATION, make_target

from .aarch64 import Emulated
from .cpus import BY_NAME, CPU, is_known, llvm_version
from .kernels import assembly, emitted, first_case

EMULATED = BY_NAME["neoverse-n1"]  # the one whose code qemu runs, as that takes minutes
RIGHT, COMPILES = "right", "compiles"


@dataclass(frozen=True)
class Result:
    """What became of a composite's cases on a CPU."""

    composite: str
    cpu: CPU
    verdict: str

    @property
    def is_failure(self) -> bool:
        """Whether it did not compile, or was wrong."""
        return self.verdict.startswith("FAILED")


def cases(composite: Composite) -> list[Case]:
    """The first case, and the smallest, which has tails."""
    here = [case for case in composite.cases if GENERATION in case.generations]
    smallest = min(here, key=_elements, default=None)
    return list(dict.fromkeys(case for case in (*here[:1], smallest) if case is not None))


def _elements(case: Case) -> int:
    return sum(math.prod(shape) for shape, _ in case.args.values())


def compiled(composites: Iterable[Composite], cpus: Sequence[CPU]) -> Iterator[Result]:
    """The first case of each composite for each CPU."""
    for composite in composites:
        case = first_case(composite)
        for cpu in cpus if case is not None else ():
            yield Result(composite.name, cpu, _compiled(composite, case, cpu))


def _compiled(composite: Composite, case: Any, cpu: CPU) -> str:
    if not is_known(cpu):
        return f"unknown to LLVM {llvm_version()}"
    try:
        assembly(composite, case, cpu.target)
    except SelfbyocError as err:
        return f"FAILED: {one_line(err)}"
    return COMPILES


def run(composites: Iterable[Composite], cpus: Sequence[CPU]) -> Iterator[Result]:
    """The first and the smallest case of each composite, on each CPU that can be run here."""
    able = [cpu for cpu in cpus if is_known(cpu) and (can_run(cpu) or cpu.is_arm)]
    for composite in composites:
        for cpu in able:
            found = [x for case in cases(composite) for x in judged(composite, case, cpu)]
            if found:
                wrong = [text for text in found if text != RIGHT]
                yield Result(composite.name, cpu, f"FAILED: {wrong[0]}" if wrong else RIGHT)


def can_run(cpu: CPU) -> bool:
    """Whether this machine runs the CPU's code, as it is or short of what LLVM hardly uses."""
    return not cpu.is_arm and host.runs(host.fitted(cpu.target))


def judged(composite: Composite, case: Case, cpu: CPU) -> list[str]:
    """For each kernel of the case, on random inputs against NumPy: right, or what is wrong."""
    target = make_target(cpu.target if cpu.is_arm else host.fitted(cpu.target))
    what = subjects_of(emitted(composite, case), None, target, [composite])
    return [_judged(subject, target, cpu) for subject in what]


def _judged(subject: Subject, target: Any, cpu: CPU) -> str:
    source = subject.kernel.source
    with TemporaryDirectory() as folder, using(False):
        emulated = cpu.is_arm and Emulated(source, target, Path(folder))
        runner: Any = emulated or Runner(source, target)
        check = Comparison(subject, runner, Plan(target)).check("random")
    return RIGHT if check.status == PASSED else str(check)


def chosen(names: Sequence[str] | None) -> list[Composite]:
    """The built-in composites of these names; all, if none is named."""
    return [c for c in selfbyoc.BUILTIN if not names or c.name in names]
