"""Every built-in composite after every pass of TVM that moves layouts: is it matched, and right?

python tools/layout_passes.py              this generation's half, and the page
python tools/layout_passes.py --continue   programs that an interrupted run has judged are kept
python tools/layout_passes.py --page       the page anew, from the data of both generations
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from layout_cells.cells import judged
from layout_cells.page import page
from layout_cells.programs import programs

from selfbyoc.tvm import GENERATION

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "makers" / "layout-passes.md"
GENERATIONS = ("relay", "relax")


def data_file(generation: str) -> Path:
    """Where the cells of a generation are kept, one a line."""
    return ROOT / "docs" / "reports" / f"layout-passes-{generation}.jsonl"


def read(generation: str) -> list[dict[str, Any]]:
    """The cells of a generation."""
    path = data_file(generation)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def run(*, is_continued: bool) -> None:
    """Judge all programs of this generation; each is written as it is done."""
    known = {cell["program"] for cell in read(GENERATION)} if is_continued else set()
    with data_file(GENERATION).open("a" if is_continued else "w", encoding="utf-8") as file:
        for program in programs():
            if program.name in known:
                continue
            for cell in judged(program):
                print(json.dumps(cell.to_json()), file=file, flush=True)
                if cell.verdict in ("less", "refused") or not cell.right:
                    print(json.dumps(cell.to_json()), flush=True)
    places = {program.name: at for at, program in enumerate(programs())}
    cells = sorted(read(GENERATION), key=lambda cell: places[cell["program"]])
    lines = (json.dumps(cell) + "\n" for cell in cells)
    data_file(GENERATION).write_text("".join(lines), encoding="utf-8")


def text() -> str:
    """The page, of the data of both generations."""
    return page({generation: read(generation) for generation in GENERATIONS})


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--continue", action="store_true", dest="is_continued")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    args = parser.parse_args()
    if not args.page:
        warnings.simplefilter("ignore")
        run(is_continued=args.is_continued)
    PAGE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
