"""A process of the matrix: builds and runs cells, for what a crash ends.

Reads cells as JSON from its input, a line each with `alone` beside it: whether TVM alone is asked.
Writes a line as each begins and one as it ends, so that of a crash the cell is known.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

# By path, as what it starts: the whole of tools/ is no package.
sys.path.insert(0, str(Path(__file__).parents[1]))

import selfbyoc
from executor_cells.calls import OURS, called
from executor_cells.cells import FILE, HOST, PROCESS, Cell
from executor_cells.generation import VARIANTS, roads
from executor_cells.programs import BY_NAME, Arrays, Program
from executor_cells.reload import reloaded
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction

TIMEOUT = 300.0


class _Compiled(logging.Handler):
    """Which composites the hook has compiled."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.names: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """`symbol: composite name, level, target`."""
        if isinstance(record.args, tuple) and len(record.args) == 4:
            self.names.add(str(record.args[1]))


class NotUsed(AssertionError):
    """A composite of the program was not taken, or its kernel not built."""


def model(program: Program, arrays: Arrays) -> tuple[Any, Arrays]:
    """The program as a module, and the numbers of its inputs."""
    constants = {name: arrays[name] for name in program.constants}
    mod = selfbyoc.emit(program.function, program.types, constants)
    if program.open_extents:
        mod = roads.with_open_extents(mod, program.open_extents)
    return mod, {name: a for name, a in arrays.items() if name not in constants}


def expected(program: Program, arrays: Arrays) -> tuple[list[np.ndarray], int]:
    """What NumPy computes, and the longest sum in it."""
    graph = ir.read(selfbyoc.emit(program.function, program.types)["main"])
    return evaluate(graph, [arrays[v.name] for v in graph.inputs]), longest_reduction(graph)


def parted(program: Program, mod: Any) -> Any:
    """The module partitioned, every composite taken that is to be."""
    done = selfbyoc.partition_for_tefuse(mod, composites=program.composites)
    counts = selfbyoc.report(done).counts
    if counts != dict(program.counts):
        raise NotUsed(f"taken: {counts}, expected {dict(program.counts)}")
    return done


def outcome(cell: Cell, is_alone: bool) -> tuple[str, str]:
    """Build and run a cell: what came of it, and what was said."""
    if cell.call:
        return call_outcome(cell, is_alone)
    program = BY_NAME[cell.program]
    arrays = program.arrays()
    mod, inputs = model(program, arrays)
    wanted, reduction = expected(program, arrays)
    try:
        found = _run(cell, mod if is_alone else parted(program, mod), inputs, is_alone)
    except NotUsed as err:
        return "wrong", str(err)
    except Exception as err:  # whatever TVM raises
        return "refused", said(err)
    if len(found) != len(wanted):
        return "wrong", f"{len(found)} outputs, expected {len(wanted)}"
    pairs = zip(found, wanted, strict=True)
    faults = [first_wrong(f, w, str(f.dtype), reduction) for f, w in pairs]
    wrong = next((text for text in faults if text), "")
    return ("wrong", wrong) if wrong else ("right", "")


def call_outcome(cell: Cell, is_alone: bool) -> tuple[str, str]:
    """The same of a call out of the ordinary."""
    if is_alone and cell.executor in OURS:
        return "", "has no such call"
    try:
        wrong = called(cell.call, cell.executor, roads, is_alone)
    except Exception as err:  # whatever TVM raises
        return "refused", said(err)
    return ("wrong", wrong) if wrong else ("right", "")


def said(err: Exception) -> str:
    """The error's name and the line of it that says what is wrong, without paths of this machine.

    Of a compiler that TVM starts that is its first error, not the command line at the end.
    """
    lines = [line.strip() for line in str(err).strip().splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror: ", line)]
    text = (errors or lines[-1:] or [""])[0]
    name = type(err).__name__
    text = re.sub(r"/\S*/", ".../", text.removeprefix(f"{name}: "))
    return f"{name}: {text}"[:400]


def _run(cell: Cell, mod: Any, inputs: Arrays, is_alone: bool) -> list[np.ndarray]:
    variant = VARIANTS.get(cell.variant)
    name = (variant.target if variant else "") or cell.target
    target = selfbyoc.host_target() if name == HOST else name
    given = (variant.context, variant.options) if variant else ({}, {})
    noted = _Compiled()
    log = logging.getLogger("selfbyoc.codegen.lower")
    log.addHandler(noted)
    log.setLevel(logging.DEBUG)
    try:
        built = roads.build(cell.executor, mod, target, cell.level, given[0], **given[1])
    finally:
        log.removeHandler(noted)
    missing = set(BY_NAME[cell.program].counts) - noted.names
    if missing and not is_alone:
        raise NotUsed(f"the hook did not compile {sorted(missing)}")
    return _called(cell, built, inputs)


def _called(cell: Cell, built: Any, inputs: Arrays) -> list[np.ndarray]:
    if cell.way == PROCESS:
        with tempfile.TemporaryDirectory() as scratch:
            roads.write(cell.executor, built, Path(scratch))
            return _elsewhere(cell.executor, Path(scratch), inputs)
    if cell.way == FILE:
        built = reloaded(roads, cell.executor, built)
    return roads.run(cell.executor, roads.session(cell.executor, built), inputs)


def _elsewhere(executor: str, folder: Path, inputs: Arrays) -> list[np.ndarray]:
    """Run what was exported in a process that does not have this package."""
    np.savez(folder / "in.npz", **inputs)  # type: ignore[arg-type]
    command = [sys.executable, roads.__file__, executor, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr.strip()[-300:]}")
    with np.load(folder / "out.npz") as file:
        return [file[name] for name in file.files]


def main() -> None:
    """All cells of the input."""
    for line in sys.stdin.read().splitlines():
        asked = json.loads(line)
        is_alone = asked.pop("alone")
        print(json.dumps({"begun": True}), flush=True)
        kind, says = outcome(Cell(**asked), is_alone)
        print(json.dumps({"kind": kind, "says": says}), flush=True)


if __name__ == "__main__":
    main()
