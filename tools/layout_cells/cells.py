"""A cell: a program after a pass, partitioned and run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc.analysis.verify.inputs import arrays
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import structural_equal

from .generation import ALONE, PASSES
from .programs import Program


@dataclass(frozen=True)
class Cell:
    """What came of it.

    verdict  "unchanged" by the pass; "matched" as before it; "taken", but by other composites;
             "less": fewer ops are taken than before; "refused": the pass raised
    right    what our kernels and TVM compute of it is NumPy's; of a pass that raised None
    tvm      what TVM alone makes of the module after the pass, if ours is not right
    """

    program: str
    after: str
    verdict: str
    right: bool | None = True
    tvm: str = ""
    before: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    layouts: str = ""
    said: str = ""

    def to_json(self) -> dict[str, Any]:
        """Without what says nothing."""
        return {name: value for name, value in asdict(self).items() if value not in ("", {})}


class Judge:
    """A program with seeded data, and what NumPy computes of it."""

    def __init__(self, program: Program) -> None:
        self.program, case = program, program.case
        graph = ir.read(emit(program.compute, case.args)["main"])
        given = arrays(graph, {}, "random")
        by_name = {value.name: array for value, array in zip(graph.inputs, given, strict=True)}
        names = list(case.args)
        self.args = [by_name[names[0]]]
        weights = {name: by_name[name] for name in names[1:] if name in by_name}
        self.mod = emit(program.compute, case.args, weights)
        self.report = selfbyoc.report(selfbyoc.partition_for_tefuse(self.mod))
        self.expected = evaluate(graph, given)
        self.reduction = longest_reduction(graph)

    def cell(self, name: str) -> Cell:
        """After one pass."""
        try:
            after = PASSES[name](self.mod)
        except Exception as err:  # whatever a pass of TVM raises is what the cell says
            return Cell(self.program.name, name, "refused", None, said=_last_line(err))
        if structural_equal(after, self.mod):
            return Cell(self.program.name, name, "unchanged")
        return self._judged(name, after)

    def _judged(self, name: str, after: Any) -> Cell:
        parted = selfbyoc.partition_for_tefuse(after)
        told, before = selfbyoc.report(parted), self.report
        verdict = "matched" if told.counts == before.counts else "taken"
        if verdict == "taken" and _others(told.left) > _others(before.left):
            verdict = "less"
        right = self._is_right(selfbyoc.build(parted)(*self.args))
        tvm = "" if right else self._alone(after)
        return Cell(
            self.program.name, name, verdict, right, tvm, dict(before.counts), dict(told.counts),
            {} if verdict == "matched" else dict(told.left), told.layouts,
        )  # fmt: skip

    def _is_right(self, found: list[np.ndarray]) -> bool:
        pairs = zip(found, self.expected, strict=True)
        return not any(first_wrong(f, w, str(f.dtype), self.reduction) for f, w in pairs)

    def _alone(self, after: Any) -> str:
        try:
            return "right" if self._is_right(ALONE(after, self.args)) else "wrong, too"
        except Exception as err:  # TVM may raise anything; the cell says it
            return f"refused: {_last_line(err)}"


_MOVES = ("transpose", "reshape", "layout_transform")


def _others(left: dict[str, int]) -> int:
    """How many ops compute something."""
    return sum(count for kind, count in left.items() if kind not in _MOVES)


def _last_line(err: Exception) -> str:
    return str(err).strip().splitlines()[-1][:160]


def judged(program: Program) -> list[Cell]:
    """The cells of a program."""
    judge = Judge(program)
    return [judge.cell(name) for name in PASSES]
