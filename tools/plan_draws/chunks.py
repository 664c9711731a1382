"""Some thousands of plans of a family at a time, as one line of a file: a run goes on after it."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from .asked import draw
from .cases import Case, checked, from_text, tried
from .smaller import shrunk

PLANS = 5000  # of a chunk
MACHINES = 2  # of a drawn program


@dataclass
class Chunk:
    """What was tried and found; the seed and the number draw the same again."""

    family: str
    seed: int
    number: int
    plans: int = 0
    draws: int = 0
    not_drawn: int = 0
    seconds: float = 0.0  # of the processor
    slowest: float = 0.0  # case, in seconds
    machines: dict[str, int] = field(default_factory=dict)  # plans by CPU
    composites: dict[str, int] = field(default_factory=dict)  # draws
    findings: list[dict[str, Any]] = field(default_factory=list)

    def line(self) -> str:
        """As the file has it."""
        return json.dumps(asdict(self))


def key_of(fault: str) -> str:
    """The same for faults that may well be one."""
    return re.sub(r"\d+", "#", fault)[:120]


def run(family: str, seed: int, number: int, plans: int = PLANS) -> Chunk:
    """Try so many plans of a family."""
    rng, found = Random(f"{seed} {family} {number}"), Chunk(family, seed, number)
    machines: Counter[str] = Counter()
    composites: Counter[str] = Counter()
    known: set[str] = set()
    begin = last = time.process_time()
    while found.plans < plans:
        drawn = draw(family, rng)
        if drawn is None:
            found.not_drawn += 1
            continue
        found.draws += 1
        composites[drawn.composite.name] += 1
        for _ in range(MACHINES):
            for case, outcome in tried(drawn, rng):
                now = time.process_time()
                found.slowest, last = max(found.slowest, now - last), now
                found.plans += outcome.plans
                machines[case.cpu] += outcome.plans
                found.findings += _new(case, outcome.faults, known)
    found.seconds = time.process_time() - begin
    found.machines, found.composites = dict(machines), dict(composites)
    return found


def _new(case: Case, faults: list[str], known: set[str]) -> list[dict[str, Any]]:
    """The faults that the chunk has not seen, each by as small a case as shows it."""
    made = []
    for fault in faults:
        if (key := key_of(fault)) in known:
            continue
        known.add(key)
        made.append({"fault": fault, "case": json.loads(_small(case, key).to_json())})
    return made


def _small(case: Case, key: str) -> Case:
    return shrunk(case, lambda other: key in map(key_of, checked(other).faults))


def replayed(data: Any) -> list[str]:
    """The faults that a finding's case has now."""
    return checked(from_text(json.dumps(data["case"]))).faults
