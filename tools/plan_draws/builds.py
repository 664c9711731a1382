"""Drawn programs that are built, for a drawn target, and run where this machine can: what no plan
says of its compute and its schedule.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from selfbyoc import host, partition_for_tefuse
from selfbyoc._tvm import GENERATION, make_target
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.lower import lower
from selfbyoc.fuzz.attempt import Setting
from selfbyoc.fuzz.infer import infer
from selfbyoc.fuzz.judge import Finding, Judge
from selfbyoc.fuzz.meaning import graph_of, model, numbers
from selfbyoc.fuzz.program import CONSTANT, INPUT, Program, from_json
from selfbyoc.fuzz.shapes import LIMIT, work
from selfbyoc.fuzz.shrink import shrunk
from selfbyoc.partition.report import report
from selfbyoc.tuning.process import Failed

from . import machines
from .asked import Draw, draw

SECONDS = 300.0  # for one build and its runs
RIGHT, COMPILED, UNWRITTEN = "right", "compiled", "unwritten"
LEVEL = 0  # of LLVM's optimisation: the same TIR, in half the time


def built(family: str, seed: int, number: int, judge: Judge) -> dict[str, Any]:
    """Build one program of a family, and run it if it can be; -> what came of it, as data."""
    rng = Random(f"{seed} {family} {number} built")
    program = _small(family, rng)
    cpu, cores = rng.choice(machines.known()), rng.choice(machines.CORES)
    target = f"{machines.text(cpu)} -num-cores={cores} -opt-level={LEVEL}"
    judge.setting = Setting(target)
    if host.cannot_run(make_target(target)):
        status, text = _compiled(program, target, judge)
    else:
        status, text, program = _judged(program, judge)
    line = {"family": family, "seed": seed, "number": number, "generation": GENERATION}
    line |= {"cpu": cpu, "target": target, "status": status, "text": text}
    return line if not text else {**line, "program": json.loads(program.to_json())}


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


def _judged(program: Program, judge: Judge) -> tuple[str, str, Program]:
    before = judge.counts[UNWRITTEN]
    found = judge.verdict(program)
    if found is None:
        return UNWRITTEN if judge.counts[UNWRITTEN] > before else RIGHT, "", program
    small: Finding = shrunk(found, judge.verdict, 60, 4 * SECONDS)
    return small.kind, small.text, small.program


def _compiled(program: Program, target: str, judge: Judge) -> tuple[str, str]:
    if judge.process.calls == 0:
        judge.process.start()
    try:
        status = judge.process.call(compiled, program.to_json(), target, seconds=SECONDS)
    except Failed as err:
        return "raised", str(err)
    return status, ""


def compiled(text: str, target: str) -> str:
    """In the worker: the kernels of a program as machine code, nothing taking over from them."""
    program = from_json(text)
    try:
        mod = model(program, numbers(program, graph_of(program), "random"))
    except Exception:  # TVM's type rules raise whatever they like
        return UNWRITTEN
    made = make_target(target)
    parted = partition_for_tefuse(mod, target=made)
    assert report(parted).matched, "nothing matched"
    for kernel in kernels(parted):
        lower(kernel.source, made)
    return COMPILED


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
