"""A process of whole/test_executor_matrix.py: one composite through passes, levels and executors.

    python matrix_cells.py COMPOSITE PASSES LEVELS EXECUTORS    # each of the last three with commas

Prints a line of JSON as each cell begins and one as it ends, so that of a crash the cell is known.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from harness import expected, random_args

import selfbyoc
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.case import Case
from selfbyoc.language.composite import Composite
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import GENERATION

if GENERATION == "relay":
    from relay_executors import EXECUTORS, PASSES, with_inputs
else:
    from relax_executors import EXECUTORS, PASSES, with_inputs

AS_THEY_ARE = ("inputs", "constants")  # no pass before: the weights are inputs, or constants


def smallest(composite: Composite) -> Case:
    """The case of the least data, of those that this generation has."""
    here = [case for case in composite.cases if GENERATION in case.generations]
    return min(here, key=lambda case: sum(int(np.prod(s)) for s, _ in case.args.values()))


class PassRefused(Exception):
    """The pass itself raised."""


def after(name: str, mod: Any) -> Any:
    """The module after a pass."""
    try:
        return PASSES[name](mod)
    except Exception as err:
        raise PassRefused(last_line(err)) from err


class Model:
    """A composite's smallest case after a pass, partitioned, with data and what is expected."""

    def __init__(self, composite: Composite, before: str) -> None:
        case = smallest(composite)
        program = case.program or composite.pattern
        args = random_args(case)
        constants = {} if before == "inputs" else dict(list(args.items())[1:])
        self.args = {name: a for name, a in args.items() if name not in constants}
        self.plain = after(before, emit(program, case.args, constants))
        alone = before in AS_THEY_ARE
        self.parted = selfbyoc.partition_for_tefuse(
            self.plain, composites=[composite] if alone else None
        )
        self.report = selfbyoc.report(self.parted)
        self.reduction = longest_reduction(
            ir.read(emit(case.program or composite.pattern, case.args)["main"])
        )
        if before == "quantize":  # other numbers, by intention: those of the quantised graph
            whole, arrays = with_inputs(self.plain["main"])
            self.expected = evaluate(ir.read(whole), [*self.args.values(), *arrays])
        else:
            self.expected = expected(composite, case, args)

    def run(self, level: int, executor: str) -> dict[str, Any]:
        """Build and run: what is wrong, if anything."""
        try:
            found = EXECUTORS[executor](self.parted, level, self.args)
        except Exception as err:
            return {"refused": last_line(err), "plain": self._plain(level, executor)}
        assert len(found) == len(self.expected)
        pairs = zip(found, self.expected, strict=True)
        return {"wrong": [first_wrong(f, w, str(f.dtype), self.reduction) for f, w in pairs]}

    def _plain(self, level: int, executor: str) -> str | None:
        """What the same road says to the module that is not partitioned."""
        try:
            EXECUTORS[executor](self.plain, level, self.args)
        except Exception as err:
            return last_line(err)
        return None


def last_line(err: Exception) -> str:
    return str(err).strip().splitlines()[-1][:300]


def main(name: str, *lists: str) -> None:
    """All cells of the product of the three lists."""
    composite = next(c for c in selfbyoc.BUILTIN if c.name == name)
    befores, levels, executors = (text.split(",") for text in lists)
    for before in befores:
        say(cell=["partition", before])
        try:
            model = Model(composite, before)
        except PassRefused as err:
            say(before=before, pass_refused=str(err))
            continue
        records = [f"{r.composite}: {r.reason}" for r in model.report.records if r.reason]
        say(before=before, counts=model.report.counts, reasons=records, left=model.report.left)
        for level, executor in product(levels, executors):
            cell = [before, level, executor]
            say(cell=cell)
            say(done=cell, **model.run(int(level), executor))


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
