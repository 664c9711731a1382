"""Models of transformers and torchvision with open sizes, by every way in: the table of
docs/makers/open-sizes.md.

    python tools/open_sizes.py [--only PATTERN] [--way WAY] [--again]
    python tools/open_sizes.py --document      the table only, from the results that are there

Two layers each, small; needs PyTorch, torchvision and transformers (`make open-sizes`). A cell is
a model, a way, eager or sdpa attention, and which sizes are open; it is right if it is so at every
choice of open_models/inputs.py. Results are lines of JSON in docs/reports/open-sizes.jsonl;
what has one is not tried again without --again. Exit status 1 when a result is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from op_by_op import ENDED, REPORTS, RIGHT, WRONG, Judgement, in_a_process, write_between_marks
from open_models.catalogue import MODELS, Model
from open_models.exports import WAYS, imported, module
from open_models.inputs import inputs, points

RESULTS, DOCUMENT = REPORTS / "open-sizes.jsonl", REPORTS.parent / "makers/open-sizes.md"
CLOSE = 1e-4  # of the largest value
Key = tuple[str, str, str, str]  # model, way, attention, open sizes


def cells(only: Sequence[str], ways: Sequence[str]) -> Iterator[tuple[Key, Model]]:
    """All of the table; those of models and ways that are asked for."""
    for model in MODELS:
        for way, attention, sizes in itertools.product(WAYS, model.attentions, model.opened):
            if any(fnmatch(model.name, p) for p in only or ["*"]) and way in (ways or WAYS):
                yield (model.name, way, attention, " and ".join(sizes)), model


def tried(key: Key, model: Model, *, cached: bool) -> Judgement:
    """Whether a cell builds, and is right at every size; -> status, and the seconds of its build (0
    from the compile cache) or why not.
    """
    import torch

    import selfbyoc

    opened = key[3].split(" and ")
    stage, began = "export or import", time.perf_counter()
    try:
        made = module(model, key[2])
        mod = imported(model, made, key[1], opened)
        stage, began = "build", time.perf_counter()
        library = selfbyoc.build(mod, cache=cached)
        seconds = 0 if cached else time.perf_counter() - began
        stage, worst = "run", 0.0
        for at in points(model, opened):
            given = inputs(model, at)
            with torch.no_grad():
                wanted = made(*given.values()).numpy()
            (found,) = library(*(x.numpy() for x in given.values()))
            worst = max(worst, float(np.abs(found - wanted).max() / np.abs(wanted).max()))
    except Exception as err:  # of PyTorch, of TVM or ours: what the table tells
        return ENDED, f"{stage}: {type(err).__name__}: {str(err).splitlines()[0][:300]}"
    return (RIGHT, f"{seconds:.0f}") if worst < CLOSE else (WRONG, f"off by {worst:.2g}")


def _in_a_list(key: Key, model: Model, *, cached: bool) -> list[Judgement]:
    return [tried(key, model, cached=cached)]


def read() -> dict[Key, Judgement]:
    """The results that are there; the last of each cell."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    return {tuple(row[:4]): tuple(row[4:]) for row in rows}


def _document() -> None:
    found = read()
    lines = [f"| model | {' | '.join(WAYS)} |", "|---" * (len(WAYS) + 1) + "|"]
    for model in MODELS:
        row = [_cell(model, way, found) for way in WAYS]
        lines.append(f"| {model.name} | {' | '.join(row)} |")
    write_between_marks(DOCUMENT, lines)


def _cell(model: Model, way: str, found: dict[Key, Judgement]) -> str:
    keys = [key for key, _ in cells([model.name], [way])]
    known = {key: found[key] for key in keys if key in found}
    right = [float(text) for status, text in known.values() if status == RIGHT]
    wrong: dict[str, list[Key]] = {}
    for key, (status, text) in known.items():
        if status != RIGHT:
            wrong.setdefault(text, []).append(key)
    count = f"{len(right)} of {len(keys)} right" if right else ""
    seconds = f"{min(right):.0f} to {max(right):.0f} s" if any(right) else ""
    said = ", ".join(filter(None, [count, seconds]))
    told = [f"{_which(those, len(keys))}: {text}" for text, those in wrong.items()]
    return "; ".join(filter(None, [said, *told])).replace("|", "/") or "not tried"


def _which(those: Sequence[Key], count: int) -> str:
    """Cells of one model and way by what they differ in."""
    return "all" if len(those) == count else " and ".join(f"{k[2]}, {k[3]}" for k in those)


def main() -> int:
    """Try what has no result yet, write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--way", action="append", default=[], choices=WAYS)
    parser.add_argument("--again", action="store_true", help="also what has a result already")
    parser.add_argument("--cached", action="store_true", help="with the compile cache; no times")
    parser.add_argument("--seconds", type=int, default=600, help="of one cell")
    parser.add_argument("--document", action="store_true", help="the table only")
    args = parser.parse_args()
    held = {} if args.again else read()
    statuses: list[Any] = []
    for key, model in [] if args.document else cells(args.only, args.way):
        if key in held:
            continue
        work = partial(_in_a_list, key, model, cached=args.cached)
        (status, text), *_ = in_a_process(work, args.seconds)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps([*key, status, text]) + "\n")
        print(*key, status, text, sep=", ", flush=True)
        statuses.append(status)
    _document()
    return int(WRONG in statuses)


if __name__ == "__main__":
    sys.exit(main())
