"""The kinds of files, and what was found of each as rows of a table."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice, takewhile
from pathlib import Path

from loads.table import Row

from .draw import Damage, cuts, drawn
from .fork import Ended, tried_each
from .specimen import Specimen

KINDS = ("libraries", "caches", "records", "modules", "programs", "onnx_files", "arrays")
GOOD = {"same": "the same", "error": "an error"}
_SHOWN = 8  # of what is wrong
_TOGETHER = 16  # in a process


@dataclass(frozen=True)
class Asked:
    """How much, and where what is wrong is kept.

    every     cut at every so many bytes; 0: not at all
    seconds   for a kind, shared out to its rows; None: until all is done
    """

    flips: int = 10_000
    every: int = 1
    seed: int = 0
    begin: int = 0
    keep: Path | None = None
    seconds: float | None = None


def rows(kind: str, asked: Asked) -> Iterator[Row]:
    """A row for each specimen of a kind and each way of damaging it; none where it needs what is
    not installed.
    """
    specimens: Callable[[], Iterator[Specimen]] = import_module(f".{kind}", __package__).specimens
    found = list(specimens())
    share = -(-asked.flips // max(1, len(found)))
    seconds = asked.seconds and asked.seconds / max(1, len(found)) / (2 if asked.every else 1)
    for number, each in enumerate(found):
        numbers, seed = range(asked.begin, asked.begin + share), asked.seed + 1000 * number
        damages = (drawn(seed, n, each.files) for n in numbers)
        yield _row(each, "", _within(seconds, damages), asked.keep)
        if asked.every:
            shorter = _within(seconds, cuts(seed, each.files, asked.every))
            yield _row(each, ", cut", shorter, asked.keep)


def _within(seconds: float | None, damages: Iterable[Damage]) -> Iterator[Damage]:
    """Those that begin in this time."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    return takewhile(lambda _: time.monotonic() < until, damages)


def _row(specimen: Specimen, what: str, damages: Iterator[Damage], keep: Path | None) -> Row:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    while some := list(islice(damages, _TOGETHER)):
        for damage, ended in zip(some, judged(specimen, some), strict=True):
            counts[ended.how] += 1
            if ended.how in GOOD:
                continue
            wrong.append(f"{damage.text}: {ended.how}: {ended.text}")
            print(f"  {specimen.name}: {wrong[-1]}", flush=True)
            if keep is not None:
                _kept(specimen, damage, keep)
    told = [f"{counts[how]:,} {text}" for how, text in GOOD.items()]
    bad = [f"{count:,} {how}" for how, count in sorted(counts.items()) if how not in GOOD]
    found, problem = ", ".join([*told, *bad]), "; ".join(wrong[:_SHOWN])
    return Row(specimen.name + what, f"{counts.total():,}", found, "either of them", problem)


def judged(specimen: Specimen, damages: Sequence[Damage]) -> list[Ended]:
    """What becomes of damaged files: `same`, `error`, or what is wrong."""
    with tempfile.TemporaryDirectory(prefix="damage-") as name:
        folders = [Path(name) / str(n) for n in range(len(damages))]
        for folder, damage in zip(folders, damages, strict=True):
            folder.mkdir()
            for file, data in {**specimen.files, damage.file: damage.data}.items():
                (folder / file).write_bytes(data)
        ends = tried_each([partial(specimen.read, folder) for folder in folders])
        return [_judged(specimen, *each) for each in zip(ends, folders, strict=True)]


def _judged(specimen: Specimen, ended: Ended, folder: Path) -> Ended:
    if ended.how != "value":
        return ended
    text = specimen.judge(ended.value, folder)
    return Ended("differs", text) if text else Ended("same")


def _kept(specimen: Specimen, damage: Damage, keep: Path) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    words = damage.text.replace(":", "").replace(",", "").replace(" ", "-")[:60]
    name = f"{specimen.name.replace(' ', '-')}-{words}-{damage.file}"
    (keep / name).write_bytes(damage.data)
