"""What is refused for a reason that is not ours, where TVM alone does something else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from selfbyoc.tvm import GENERATION

from .calls import OURS
from .cells import Cell, Outcome


@dataclass(frozen=True)
class Limit:
    """A limit of TVM that only a module with external functions meets."""

    generation: str
    executor: str
    field: str  # of the cell
    value: str
    text: str  # a regular expression for kind and words
    why: str


LIMITS: tuple[Limit, ...] = (
    Limit(
        "relay", "aot", "way", "memory", "crash SIGSEGV",
        "The AOT executor's code calls an external function by its symbol, and nothing resolves "
        "one in memory: export the library and load it (docs/makers/tvm-notes.md)",
    ),
    Limit(
        "relay", "aot", "program", "one result twice", "wrong",
        "The AOT executor writes a value that is returned several times into the first of these "
        "outputs alone, and leaves the others as they were (docs/makers/tvm-notes.md)",
    ),
    Limit(
        "relay", "aot", "variant", "tir.usmp.enable=True", "num_args should be",
        "The AOT executor passes the pool of constants on only together with a pool of workspaces, "
        "which none of these kernels needs; TVM alone fails in the same way with `x + constant` "
        "(docs/makers/tvm-notes.md)",
    ),
)  # fmt: skip


def reason(cell: Cell, outcome: Outcome) -> str:
    """Why a cell is not right, where that is known."""
    for limit in LIMITS:
        is_cell = (limit.generation, limit.executor) == (GENERATION, cell.executor)
        is_cell &= getattr(cell, limit.field) == limit.value
        if is_cell and re.search(limit.text, f"{outcome.kind} {outcome.says}"):
            return limit.why
    return ""


def to_be_mended(cell: Cell, outcome: Outcome) -> bool:
    """Whether something is not right that TVM alone does better, or that is our own."""
    if outcome.kind == "right" or reason(cell, outcome):
        return False
    if cell.executor in OURS:
        return outcome.kind != "refused"
    is_better = outcome.kind == "refused" and outcome.alone in ("wrong", "crash")
    return outcome.kind != outcome.alone and not is_better
