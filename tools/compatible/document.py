"""The table of all results that are there, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .table import COMBINATIONS, Combination

HEAD = ("TVM", "apache-tvm-ffi", "Python", "NumPy", "CPU", "tests", "passed", "failed", "skipped")


def markdown(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The table, with a note on every row that is not all passed."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    notes: list[str] = []
    for combination in COMBINATIONS:
        cells = _row(combination, results.get(combination.name), notes)
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1)), ""]
    return "\n".join([*lines, *_machines(results)])


def _row(combination: Combination, found: Any, notes: list[str]) -> list[str]:
    kind = "Relay" if combination.is_relay else "Relax"
    has = found["versions"] if found else {}
    cpu = "AVX2 (AVX-512 hidden)" if combination.hides_avx512 else _vectors(found)
    row = [
        f"{kind} {has.get('apache-tvm', combination.tvm)}",
        has.get("apache-tvm-ffi", "none" if combination.is_relay else ""),
        has.get("python", combination.python),
        has.get("numpy", combination.numpy),
        cpu,
    ]
    if not found:
        return [*row, "not run", "", "", ""]
    if found["problem"]:
        return [*row, f"none {_note(found['problem'], notes)}", "", "", ""]
    counts = found["counts"]
    bad = counts["failed"] + counts["errors"]
    told = "; ".join(f"`{name}`: {why}" for name, why in found["failed"].items())
    failed = f"{bad} {_note(told, notes)}" if bad else "0"
    fuzz = "" if found["fuzz"] == "nothing found" else f" {_note('fuzz ' + found['fuzz'], notes)}"
    return [*row, found["tests"] + fuzz, str(counts["passed"]), failed, str(counts["skipped"])]


def _vectors(found: Any) -> str:
    return found["cpu"].rpartition("(")[2].rstrip(")") if found else ""


def _note(text: str, notes: list[str]) -> str:
    """The mark of a note; rows that say the same share it."""
    text = " ".join(text.split()).replace("|", "\\|")
    if text not in notes:
        notes.append(text)
    return f"({notes.index(text) + 1})"


def _machines(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows: dict[tuple[str, ...], list[str]] = {}
    for combination in COMBINATIONS:
        if found := results.get(combination.name):
            key = (found["system"], found["cpu"], found["when"], found["commit"])
            rows.setdefault(key, []).append(combination.name)
    return [
        f"- {system}; {cpu}; {when}, commit {commit}: {len(names)} of these"
        for (system, cpu, when, commit), names in rows.items()
    ]
