"""Drawn programs that are built, for a drawn target, proved to stay in their buffers, and run where
this machine can: what no plan says of its compute and its schedule.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from selfbyoc.analysis.bounds.bounds import Plan, of_module
from selfbyoc.analysis.bounds.proof import proof
from selfbyoc.analysis.bounds.records import Listed
from selfbyoc.analysis.bounds.runs import compiled
from selfbyoc.commands.fuzz.infer import infer
from selfbyoc.commands.fuzz.judge import RAISED, Finding, Judge
from selfbyoc.commands.fuzz.meaning import graph_of, model, numbers
from selfbyoc.commands.fuzz.program import CONSTANT, INPUT, Program, from_json
from selfbyoc.commands.fuzz.shapes import LIMIT, work
from selfbyoc.commands.fuzz.shrink import shrunk
from selfbyoc.commands.fuzz.targets import Setting
from selfbyoc.errors import FallbackWarning
from selfbyoc.machine import host
from selfbyoc.tir.lowering import finished
from selfbyoc.tuning.process import Failed
from selfbyoc.tvm import GENERATION, make_target

from . import machines
from .asked import Draw, draw

SECONDS = 300.0  # for one build and its runs
RIGHT, PROVED, UNWRITTEN = "right", "proved", "unwritten"
OUTSIDE = "outside"  # of a buffer; or an element is not written, or by two tasks
LEVEL = 0  # of LLVM's optimisation: the same TIR, in half the time


def built(family: str, seed: int, number: int, judge: Judge) -> dict[str, Any]:
    """Build one program of a family, prove it, and run it if it can be; -> what came of it."""
    rng = Random(f"{seed} {family} {number} built")
    program = _small(family, rng)
    cpu, cores = rng.choice(machines.known()), rng.choice(machines.CORES)
    target = f"{machines.text(cpu)} -num-cores={cores} -opt-level={LEVEL}"
    judge.setting = Setting(target)
    is_run, before = not host.cannot_run(make_target(target)), judge.counts[UNWRITTEN]

    def verdict(program: Program) -> Finding | None:
        return _not_proved(program, judge) or (judge.verdict(program) if is_run else None)

    found = verdict(program)
    line = {"family": family, "seed": seed, "number": number, "generation": GENERATION}
    line |= {"cpu": cpu, "target": target}
    if found is None:
        is_right = RIGHT if is_run else PROVED
        status = UNWRITTEN if judge.counts[UNWRITTEN] > before else is_right
        return {**line, "status": status, "text": ""}
    small: Finding = shrunk(found, verdict, 60, 4 * SECONDS)
    text = json.loads(small.program.to_json())
    return {**line, "status": small.kind, "text": small.text, "program": text}


def _small(family: str, rng: Random) -> Program:
    """A program that takes few steps."""
    while True:
        found: Draw | None = draw(family, rng)
        if found is not None and work(found.program, infer(found.program)) <= LIMIT:
            return _with_roles(found, rng)


def _with_roles(draw: Draw, rng: Random) -> Program:
    """Weights that are constants, or not."""
    program, nodes = draw.program, list(draw.program.nodes)
    packable = {draw.match.args[name].name for name in draw.packable}
    for n, leaf in enumerate(program.leaves()):
        if f"x{n}" in packable:
            kind = CONSTANT if rng.random() < 0.7 else INPUT
            nodes[leaf] = replace(nodes[leaf], kind=kind)
    return replace(program, nodes=tuple(nodes), seed=rng.randrange(1 << 31))


def _not_proved(program: Program, judge: Judge) -> Finding | None:
    if judge.process.calls == 0:
        judge.process.start()
    text = program.to_json()
    try:
        status, told = judge.process.call(proved, text, judge.setting.target, seconds=SECONDS)
    except Failed as err:
        return Finding(RAISED, str(err), program)
    judge.counts[UNWRITTEN] += status == UNWRITTEN
    return Finding(OUTSIDE, told, program) if status == OUTSIDE else None


def proved(text: str, target: str) -> tuple[str, str]:
    """In the worker: the kernels of a program as machine code, nothing taking over from them, and
    what is wrong with their accesses.
    """
    program = from_json(text)
    try:
        mod = model(program, numbers(program, graph_of(program), "random"))
    except Exception:  # TVM's type rules raise whatever they like
        return UNWRITTEN, ""
    made = make_target(target)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        found = of_module(mod, Plan(made))
    assert found, "nothing matched"
    wrong: list[Listed] = []
    for subject in found:
        _, scheduled = subject.kernel.schedule(made)
        func, lowered, _ = compiled(finished(scheduled.mod["main"], made), made)
        wrong += proof(lowered, func, len(subject.graph.outputs)).wrong
    return (OUTSIDE, "; ".join(map(str, wrong))) if wrong else (PROVED, "")


def summary(lines: Iterable[Mapping[str, Any]]) -> str:
    """How many programs of each family came to what, as Markdown."""
    counts: dict[str, Counter[str]] = {}
    for line in lines:
        counts.setdefault(line["family"], Counter())[line["status"]] += 1
    seen = sorted({status for count in counts.values() for status in count})
    rows = ["| plan | " + " | ".join(seen) + " |", "|---" * (1 + len(seen)) + "|"]
    rows += [
        f"| {family} | " + " | ".join(str(count[status]) for status in seen) + " |"
        for family, count in counts.items()
    ]
    return "\n".join(rows)


def waiting(
    families: Iterable[str], count: int, done: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, int]]:
    """The programs that are left, a family after the other."""
    known = {(line["family"], line["number"]) for line in done}
    names = list(families)
    for number in range(count):
        yield from ((name, number) for name in names if (name, number) not in known)
