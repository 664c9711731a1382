"""What tools/gpu.py found, as the tables of docs/reports/gpu.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

HEAD = (
    "composite", "cases", "`__global__`", "threads", "shared, KB", "registers sm_80", "sm_90",
    "spills and stack", "bank conflicts", "coalesced", "wrong",
)  # fmt: skip


def tables(found: Sequence[dict[str, Any]]) -> str:
    """A table for each generation, a row for each composite."""
    parts = []
    for generation in dict.fromkeys(line["generation"] for line in found):
        mine = [line for line in found if line["generation"] == generation]
        parts.append(f"## {generation}\n\n{_headline(mine)}\n\n{_who(mine)}\n\n{_table(mine)}")
        parts += _wrong(mine)
    return "\n\n".join(parts)


def _headline(found: Sequence[dict[str, Any]]) -> str:
    kernels = [kernel for line in found for kernel in line["kernels"]]
    one = sum(kernel["launches"] == 1 for kernel in kernels)
    wrong = sum(bool(line["wrong"]) for line in found)
    spilled = sum(any(map(_in_memory, _assembled(kernel))) for kernel in kernels)
    return (
        f"{len(found)} cases: {len(found) - wrong} right, {wrong} wrong; {one} are one `__global__`"
        f" function; {spilled} keep values of threads in memory."
    )


def _who(found: Sequence[dict[str, Any]]) -> str:
    """Who ran and compiled them, and how many were not, with the reason."""
    who = Counter(f"run by {line['ran_by']}" for line in found if line["ran_by"])
    who += Counter(f"not run: {line['not_run']}" for line in found if line["not_run"])
    not_compiled = Counter(line["not_compiled"] for line in found if line["not_compiled"])
    who += Counter({f"not compiled as CUDA: {why}": n for why, n in not_compiled.items()})
    return "\n".join(f"- {count} {text}" for text, count in who.items())


def _assembled(kernel: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for arch in kernel["assembled"].values() for each in arch]


def _in_memory(kernel: dict[str, Any]) -> int:
    """Bytes of a thread that no register holds: spilled, or indexed by what is not known."""
    return int(kernel["spilled"] + kernel["stack"])


def _table(found: Sequence[dict[str, Any]]) -> str:
    rows = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for name in dict.fromkeys(line["composite"] for line in found):
        rows.append(
            "| " + " | ".join(_row(name, [x for x in found if x["composite"] == name])) + " |"
        )
    return "\n".join(rows)


def _row(name: str, cases: Sequence[dict[str, Any]]) -> list[str]:
    kernels = [kernel for line in cases for kernel in line["kernels"]]
    each = [k for kernel in kernels for k in kernel["checked"]]
    registers = [
        [k["registers"] for kernel in kernels for k in kernel["assembled"].get(arch, [])]
        for arch in ("sm_80", "sm_90")
    ]
    return [
        name,
        str(len(cases)),
        _range([kernel["launches"] for kernel in kernels]),
        _range([k["block"][0] * k["block"][1] * k["block"][2] for k in each]),
        f"{max([k['shared'] for k in each], default=0) / 1024:.1f}",
        *map(_range, registers),
        str(max([_in_memory(k) for kernel in kernels for k in _assembled(kernel)], default=0)),
        str(max([c["degree"] for k in each for c in k["conflicts"]], default=1)),
        f"{min([s['used'] for k in each for s in k['scattered']], default=1.0):.2f}",
        str(sum(bool(line["wrong"]) for line in cases)),
    ]


def _range(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least}-{most}"


def _wrong(found: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        f"- {line['composite']}, {line['case']}: {'; '.join(line['wrong'])}"
        for line in found
        if line["wrong"]
    ]
    return ["\n".join(["Wrong:", "", *lines])] if lines else []
