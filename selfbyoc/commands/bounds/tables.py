"""What `bounds` found, as Markdown: a line a composite, and everything that is not proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ...analysis.bounds.records import ANALYZER, ENUMERATION, LEFT_OUT, OPEN, PASSED, WRONG

Line: TypeAlias = Mapping[str, Any]  # of a file: a kernel, as its record has it
Found = Sequence[Line]
_RUNS = ("fence after", "fence before", "workspaces", "bound checker")
_COLUMNS = (
    "composite", "kernels", "accesses inside: by the analyzer", "by enumeration", "not proved",
    "outputs whole: by the analyzer", "by enumeration", "not proved", "once", "sums in place",
    "again", "shared buffers: apart", "not proved", *_RUNS,
)  # fmt: skip


def markdown(files: Sequence[tuple[str, Found]]) -> str:
    """A table for each file and target, then the list."""
    lines: list[str] = []
    for name, found in files:
        for target in dict.fromkeys(kernel["target"] for kernel in found):
            these = [kernel for kernel in found if kernel["target"] == target]
            lines += [f"## {name}, `{short_cpu(target)}`", "", *_table(these), ""]
    lines += ["## What is not proved, and why", "", *_listed(files), ""]
    return "\n".join(lines).rstrip() + "\n"


def short_cpu(target: str) -> str:
    """The CPU of a target, however its TVM writes it."""
    for mark in ('"mcpu": "', '"mcpu":"', "-mcpu="):
        _, found, rest = target.partition(mark)
        if found:
            return rest.partition('"')[0].partition(" ")[0]
    return "llvm"


def _table(found: Found) -> list[str]:
    names = list(dict.fromkeys(kernel["composite"] for kernel in found))
    rows = [_row(name, [k for k in found if k["composite"] == name]) for name in names]
    if len(names) > 1:
        rows.append(_row("all", found))
    head = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    return [*head, *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def _row(name: str, kernels: Found) -> list[object]:
    proofs = [kernel["proof"] for kernel in kernels if kernel["proof"]]
    inside, races = (_sum(proof[key] for proof in proofs) for key in ("inside", "races"))
    outputs = [output for proof in proofs for output in proof["outputs"]]
    whole = Counter(output["whole"]["means"] for output in outputs)
    times = Counter(output["times"] for output in outputs if output["whole"]["means"] != OPEN)
    return [
        name, len(kernels), inside[ANALYZER], inside[ENUMERATION], inside[OPEN] + inside[WRONG],
        whole[ANALYZER], whole[ENUMERATION], whole[OPEN] + whole[WRONG],
        times["once"], times["sums"], times["again"],
        races[ANALYZER] + races[ENUMERATION], races[OPEN] + races[WRONG],
        *(_status(kernels, run) for run in _RUNS),
    ]  # fmt: skip


def _sum(counters: Iterable[dict[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for counter in counters:
        found.update(counter)
    return found


def _status(kernels: Found, name: str) -> str:
    """How many passed, and of the others what became of them."""
    runs = [run for kernel in kernels for run in kernel["runs"] if run["name"] == name]
    counts = Counter(run["status"] for run in runs)
    partly = sum(run["status"] == PASSED and bool(run["detail"]) for run in runs)
    text = [f"{counts[PASSED]}" + (f" ({partly} in part)" if partly else "")]
    text += [f"{n} {s}" for s, n in counts.items() if s not in (PASSED, LEFT_OUT)]
    return ", ".join(text)


def _listed(files: Sequence[tuple[str, Found]]) -> list[str]:
    """One line for each thing, with the generations and targets that it is true of."""
    where: dict[tuple[str, ...], list[str]] = {}
    for name, found in files:
        for kernel in found:
            for item in _items(kernel):
                key = (kernel["composite"], kernel["case"], *item)
                where.setdefault(key, []).append(f"{name} {short_cpu(kernel['target'])}")
    if not where:
        return ["Nothing."]
    head = ["| composite | case | question | buffer | index | reason | where |", "|---" * 7 + "|"]
    rows = [[*key, ", ".join(dict.fromkeys(places))] for key, places in where.items()]
    return [*head, *(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows)]


def _items(kernel: Line) -> list[tuple[str, ...]]:
    listed = kernel["proof"]["listed"] if kernel["proof"] else []
    found = [
        tuple(item[key] for key in ("question", "buffer", "index", "reason")) for item in listed
    ]
    bad = [run for run in kernel["runs"] if run["status"] not in (PASSED, LEFT_OUT)]
    return found + [(run["name"], "", "", f"{run['status']}: {run['detail']}") for run in bad]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("*", "\\*")
