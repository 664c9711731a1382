"""Every program by every executor, built in every way, and called out of the ordinary: the matrix
of docs/makers/executors.md.

    python tools/executors.py                 this generation's half, and the document
    python tools/executors.py --continue      what an interrupted run has judged already is kept
    python tools/executors.py --program int8  that alone, and no document
    python tools/executors.py --document      the document anew, from the data of both generations
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from executor_cells.cells import BUILT, EXPORTED, Cell, Outcome, cells
from executor_cells.generation import roads
from executor_cells.known import reason, to_be_mended
from executor_cells.matrix import judged
from executor_cells.page import page
from executor_cells.programs import PROGRAMS

from selfbyoc.common.threads import core_count
from selfbyoc.machine import host
from selfbyoc.tvm import GENERATION, tvm

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "makers" / "executors.md"
GENERATIONS = ("relax", "relay")


def data_file(generation: str) -> Path:
    """Where the outcomes of a generation are kept."""
    return ROOT / "docs" / "reports" / f"executors-{generation}.json"


def report(found: dict[Cell, Outcome]) -> dict[str, Any]:
    """All outcomes as data, with what built them and where."""
    return {
        "title": f"{GENERATION.capitalize()}, TVM {tvm.__version__}",
        "versions": f"selfbyoc {version()}, LLVM {tvm.target.codegen.llvm_version_major()}, Python "
        f"{platform.python_version()}",
        "machine": f"{core_count()} cores of {host.cpu()}",
        "executors": list(roads.EXECUTORS),
        "exported": EXPORTED,
        "built": BUILT,
        "taken": {p.name: _counts(p.counts) for p in PROGRAMS},
        "cells": [
            {**_given(cell), **outcome.to_json(), **_why(cell, outcome)}
            for cell, outcome in found.items()
        ],
    }


def version() -> str:
    """This package's, as its sources say."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return text.partition('\nversion = "')[2].partition('"')[0]


def _counts(counts: Any) -> str:
    return ", ".join(f"{name} {count}" if count > 1 else name for name, count in counts.items())


def _given(cell: Cell) -> dict[str, Any]:
    return {name: value for name, value in vars(cell).items() if value != ""}


def _why(cell: Cell, outcome: Outcome) -> dict[str, str]:
    why = reason(cell, outcome)
    return {"why": why} if why else {}


def _kept(path: Path) -> dict[Cell, Outcome]:
    """What an earlier run had judged."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {Cell(**cell): Outcome(**outcome) for cell, outcome in lines}


def run(wanted: Sequence[Cell], path: Path, is_continued: bool) -> dict[Cell, Outcome]:
    """Judge cells; what is done is written down, and told where it is not right."""
    known = _kept(path) if is_continued else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    left = [cell for cell in wanted if cell not in known]
    with path.open("a" if is_continued else "w", encoding="utf-8") as file:

        def watch(cell: Cell, outcome: Outcome) -> None:
            print(json.dumps([vars(cell), outcome.to_json()]), file=file, flush=True)
            if outcome.kind != "right":
                print(_given(cell), outcome.to_json(), flush=True)

        known.update(judged(left, watch))
    return {cell: known[cell] for cell in wanted}


def write_document() -> None:
    """The page of both generations' data, those that there are."""
    files = [data_file(generation) for generation in GENERATIONS]
    reports = [json.loads(f.read_text(encoding="utf-8")) for f in files if f.exists()]
    DOCUMENT.write_text(page(reports), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--continue", action="store_true", dest="is_continued")
    parser.add_argument("--program", action="append", help="of these alone, and no document")
    parser.add_argument("--document", action="store_true", help="only write the document anew")
    return parser.parse_args()


def main() -> int:
    """The exit status says whether every cell is right, or refused for a reason that is known."""
    args = _arguments()
    if args.document:
        write_document()
        return 0
    wanted = [c for c in cells() if not args.program or c.program in args.program]
    name = "some" if args.program else GENERATION
    found = run(wanted, ROOT / "build" / f"executors-{name}.jsonl", args.is_continued)
    if not args.program:
        text = json.dumps(report(found), indent=0)
        data_file(GENERATION).write_text(text + "\n", encoding="utf-8")
        write_document()
    bad = [cell for cell, outcome in found.items() if to_be_mended(cell, outcome)]
    for cell in bad:
        print("TO BE MENDED:", _given(cell), found[cell].to_json())
    print(f"{len(found)} cells, {len(bad)} to be mended")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
