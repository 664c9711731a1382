"""`bounds`: kernels proved and run, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...errors import one_line
from ...graph import sizes_text
from ...ir.emit import emit
from ...machine import host
from ...partition import Partitioning, partitioning
from ...tir.lowering import finished
from ...tvm import GENERATION
from ...tvm.types import IRModule, Target
from ..lint.cases import not_matched
from ..sizes import sizes_for
from ..verify.inputs import arrays
from ..verify.subjects import Subject, subjects
from ..verify.worker import Worker
from .proof import proof
from .records import CRASHED, FAILED, HUNG, LEFT_OUT, MATCH, KernelBounds, Proof, Run
from .runs import RUNS, built

if TYPE_CHECKING:
    from ...language.case import Case
    from ...language.composite import Composite
    from ...language.known import Composites

BUILD, PROOF, DONE = "build", "proof", "done"
Place = tuple[str, str, str]  # a composite, its case, the target


@dataclass(frozen=True)
class Plan:
    """What to check for which target, and how long one step may take."""

    target: Target
    seed: int = 0
    timeout: float = 300.0
    is_run: bool = True


def of_cases(
    composites: Iterable[Composite],
    plan: Plan,
    most: int | None = None,
    known: Set[Place] = frozenset(),
) -> Iterator[KernelBounds]:
    """The kernels of the cases that this generation has, the smallest first; of `most` of them,
    without those that are known.
    """
    for composite in composites:
        here = [case for case in composite.cases if GENERATION in case.generations]
        for case in sorted(here, key=_size)[:most]:
            if (composite.name, case.name, str(plan.target)) in known:
                continue
            yield from _of_case(composite, case, plan)


def _of_case(composite: Composite, case: Case, plan: Plan) -> Iterator[KernelBounds]:
    """The kernels of a case; or why it has none, which is no proof of anything."""
    why, found = "", []
    try:
        mod = _module(composite, case, plan, case.constants)
        decided = partitioning(mod, None, plan.target, [composite])
        if not decided.report.matched:
            why = not_matched(decided.report)[1]
    except Exception as err:  # type inference of either TVM raises plain errors of many kinds
        why = f"it is no program: {one_line(err)}"
    else:
        found = _subjects(decided, plan)
    if why:
        missing = Run(MATCH, FAILED, f"no kernel: {why}")
        yield KernelBounds(composite.name, case.name, str(plan.target), None, (missing,))
    for subject in found:
        yield check(subject, case.name, plan)


def _size(case: Case) -> int:
    return sum(prod(shape) for shape, _ in case.args.values())


def of_case(
    composite: Composite, case: Case, plan: Plan, constants: Iterable[str]
) -> list[Subject]:
    """The kernels of a case, where some arguments are constants."""
    return of_module(_module(composite, case, plan, constants), plan, [composite])


def _module(composite: Composite, case: Case, plan: Plan, constants: Iterable[str]) -> IRModule:
    rng = np.random.default_rng(plan.seed)
    weights = {name: _weight(rng, *case.args[name]) for name in constants}
    return emit(case.program or composite.pattern, case.args, weights)


def _weight(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    """A variance is one too, so it is above zero."""
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 100, shape).astype(dtype)
    return (np.abs(rng.standard_normal(shape)) + 0.1).astype(dtype)


def of_module(
    mod: IRModule,
    plan: Plan,
    composites: Composites = None,
    sizes: Mapping[str, int] | None = None,
) -> list[Subject]:
    """The different kernels of a module, at these sizes of symbols; where none is given, at an
    example's.
    """
    return _subjects(partitioning(mod, None, plan.target, composites), plan, sizes)


def _subjects(
    decided: Partitioning, plan: Plan, sizes: Mapping[str, int] | None = None
) -> list[Subject]:
    done = decided.finish(pack=True)
    found = subjects(done, decided.finish(pack=False), plan.seed)
    at = sizes_for(done, [subject.kernel for subject in found], sizes)
    return [subject.at(at) for subject in found]


def case_of(subject: Subject) -> str:
    """What stands for the case of a module's kernel: its matches, and its sizes."""
    roots, sizes = ", ".join(subject.roots), sizes_text(subject.kernel.sizes)
    return f"{roots} at {sizes}" if sizes else roots


def check(subject: Subject, case: str, plan: Plan) -> KernelBounds:
    """Prove and run one kernel: in a fork, and in another one after each crash."""
    todo, found, ran = [BUILD, PROOF, *(RUNS if plan.is_run else ())], None, []
    if plan.is_run and (why := host.cannot_run(plan.target)):
        todo, ran = [BUILD, PROOF], [Run("all runs", LEFT_OUT, why)]
    while todo:
        for event in _one_fork(subject, plan, tuple(todo)):
            if isinstance(event, Proof):
                found = event
                todo.remove(PROOF)
            else:
                ran.append(event)
                todo = [] if event.name == BUILD else [t for t in todo if t != event.name]
        todo = [] if todo == [BUILD] else todo
    return KernelBounds(subject.kernel.composite.name, case, str(plan.target), found, tuple(ran))


def _one_fork(subject: Subject, plan: Plan, todo: Sequence[str]) -> Iterator[Run | Proof]:
    """What one process finds out; at last the check that it crashed in."""
    stage, done = BUILD, False
    worker = Worker(lambda send: _work(subject, plan, todo, send), plan.timeout)
    try:
        while not done and (event := worker.receive()) is not None:
            if isinstance(event, str):
                stage, done = event, event == DONE
            else:
                yield event
        if not done:
            yield Run(stage, HUNG if worker.late else CRASHED, worker.ending())
    finally:
        worker.end()


def _work(
    subject: Subject, plan: Plan, todo: Sequence[str], send: Callable[[object], None]
) -> None:
    """In the fork: the name of each step, and what came of it."""
    outputs, stage = len(subject.graph.outputs), BUILD
    try:
        _, scheduled = subject.kernel.schedule(plan.target)
        func = finished(scheduled.mod["main"], plan.target)
        inputs = subject.passed(arrays(subject.graph, subject.constants, "random", plan.seed))
        kernel = built(func, plan.target, inputs, outputs)
        for stage in todo[1:]:
            send(stage)
            is_proof = stage == PROOF
            send(proof(kernel.lowered, kernel.func, outputs) if is_proof else RUNS[stage](kernel))
    except Exception as err:  # a user's schedule, or TVM, raises what it likes
        send(Run(stage, FAILED, f"{type(err).__name__}: {err}"[-500:]))
    send(DONE)
