"""What `onnx_ops.py` and `torch_ops.py` share: processes, judgements, documents."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from selfbyoc.errors import SelfbyocError, one_line

RIGHT, FIXED, REFUSED, WRONG, RAISED, ENDED = STATUSES = (
    "right", "right with constants", "refused", "wrong", "raised", "ended",
)  # fmt: skip
BAD = (WRONG, RAISED, ENDED)
REPORTS = Path(__file__).parents[1] / "docs" / "reports"
BEGIN, END = "<!-- table -->", "<!-- end -->"
Judgement = tuple[str, str]  # status, text


def judged(results: Callable[[], Sequence[Any]], wanted: Sequence[Any], rtol: float) -> Judgement:
    """What imports, builds and calls, against what it should give."""
    try:
        found = results()
    except SelfbyocError as err:
        return REFUSED, one_line(err)
    except Exception as err:  # what these tools look for
        return RAISED, f"{type(err).__name__}: {one_line(err)}"
    if len(found) != len(wanted):
        return WRONG, f"{len(found)} outputs instead of {len(wanted)}"
    for ours, theirs in zip(found, map(np.asarray, wanted), strict=True):
        if (ours.shape, str(ours.dtype)) != (theirs.shape, str(theirs.dtype)):
            return WRONG, f"{ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
        if not _close(ours, theirs, rtol):
            return WRONG, f"{ours.ravel()[:3]} instead of {theirs.ravel()[:3]}"
    return RIGHT, ""


_TWO_STEPS = 2**-6  # of bfloat16, which has 8 bits


def _close(ours: Any, theirs: Any, rtol: float) -> bool:
    if theirs.dtype.kind not in "fV":  # V: floats of 8 bits and less
        return bool((ours == theirs).all())
    if theirs.dtype.name == "bfloat16":
        rtol = max(rtol, _TWO_STEPS)
    a, b = ours.astype("float64"), theirs.astype("float64")
    least = 1e-6 * float(np.abs(b[np.isfinite(b)]).max(initial=1))
    return bool(np.allclose(a, b, rtol=rtol, atol=least, equal_nan=True))


def in_a_process(work: Callable[[], list[Judgement]], seconds: int) -> list[Judgement]:
    """`work` in a forked process, which may crash; nothing may have been computed in this one."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def worker() -> None:
        signal.alarm(seconds)
        warnings.simplefilter("ignore")
        queue.put(work())

    process = context.Process(target=worker)
    process.start()
    process.join()
    return [(ENDED, f"exit status {process.exitcode}")] if queue.empty() else queue.get()


def counts(held: Mapping[str, Mapping[str, Any]], versions: Mapping[str, str]) -> list[str]:
    """The table of versions and statuses: the data of each generation, and what is said of it."""
    lines = [f"| | {' | '.join(held)} |", "|---" * (len(held) + 1) + "|"]
    for name, text in versions.items():
        lines.append(f"| {text} | {' | '.join(d[name] for d in held.values())} |")
    for status in STATUSES:
        found = [sum(row[-2] == status for row in d["rows"]) for d in held.values()]
        if any(found) or status in BAD:
            lines.append(f"| {status} | {' | '.join(f'{n:,}' for n in found)} |")
    return lines


def write_between_marks(document: Path, lines: Iterable[str]) -> None:
    """Replace what stands between the marks of a document."""
    text = document.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    body = "\n".join(lines).strip()
    document.write_text("\n\n".join([before, body, after]), encoding="utf-8")
