"""The verdicts of verification: plain records, for a terminal and as JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass

from ...runtime.tolerance import Difference

PASSED, WRONG, CRASHED, RAISED, HUNG = "passed", "wrong", "crashed", "raised", "hung"
REFUSED, SKIPPED = "refused", "skipped"
RAN = "ran"  # on NaN, whose result is not compared
REFERENCE = "reference"  # the kind of a check that says why the composite's own was not compared
_FAILED = (CRASHED, HUNG, RAISED, WRONG)  # worst first


@dataclass(frozen=True)
class Check:
    """One run of a kernel on one kind of input."""

    kind: str
    status: str
    detail: str = ""
    against: str = ""  # of a wrong one: which reference it differs from
    output: int = 0
    difference: Difference | None = None

    def __str__(self) -> str:
        if self.difference is None:
            return f"{self.kind} {self.status}" + (f": {self.detail}" if self.detail else "")
        more = f" ({self.detail})" if self.detail else ""
        output = f", output {self.output}" if self.output else ""
        return f"{self.kind} {self.status} against {self.against}{output}: {self.difference}{more}"


@dataclass(frozen=True)
class Verdict:
    """All checks of one kernel at one level."""

    composite: str
    roots: tuple[str, ...]
    symbol: str
    level: str
    type: str  # of the inputs and outputs, for people
    checks: tuple[Check, ...]

    @property
    def failures(self) -> list[Check]:
        """The checks that say that the kernel must not be used; the worst first."""
        found = [c for c in self.checks if c.status in _FAILED]
        return sorted(found, key=lambda c: _FAILED.index(c.status))

    @property
    def status(self) -> str:
        """The worst of its checks; refused where nothing could be compared."""
        if self.failures:
            return self.failures[0].status
        return PASSED if self.compared else REFUSED

    @property
    def compared(self) -> list[Check]:
        """The runs that agree with the reference."""
        return [c for c in self.checks if c.status == PASSED]

    @property
    def notes(self) -> list[str]:
        """What is no failure and should be known: skipped kinds, elements that were left out."""
        return [str(c) for c in self.checks if c.detail and c.status not in _FAILED]

    def __str__(self) -> str:
        lines = [f"{self.composite} at {self.where}, {self.level}: {self.status}"]
        lines += [f"  {check}" for check in self.failures]
        for status in (PASSED, RAN):
            kinds = [c.kind for c in self.checks if c.status == status]
            lines += [f"  {status}: {', '.join(kinds)}"] if kinds else []
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    @property
    def where(self) -> str:
        """Its first root op, and how many others share the kernel."""
        first = self.roots[0] if self.roots else self.symbol
        return first + (f" and {len(self.roots) - 1} more" if len(self.roots) > 1 else "")


@dataclass(frozen=True)
class Verification:
    """What verifying a model found."""

    verdicts: tuple[Verdict, ...]
    target: str
    seed: int
    ran_by: str = ""  # the GPU, or the OpenCL runtime that took its place

    @property
    def failed(self) -> list[Verdict]:
        """The kernels that must not be used."""
        return [v for v in self.verdicts if v.failures]

    @property
    def ok(self) -> bool:
        """Whether no kernel failed, and a result was compared at all."""
        return not self.failed and any(v.compared for v in self.verdicts)

    @property
    def counts(self) -> dict[str, int]:
        """Status -> number of kernels."""
        return dict(Counter(v.status for v in self.verdicts))

    def to_json(self) -> str:
        """As JSON; numbers that JSON has no form for (NaN, infinity) are text."""
        kernels = [{**asdict(v), "status": v.status} for v in self.verdicts]
        data = {
            "target": self.target, "ran_by": self.ran_by, "seed": self.seed, "ok": self.ok,
            "kernels": kernels,
        }  # fmt: skip
        return json.dumps(_finite(data), indent=1)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.verdicts), self.summary])

    @property
    def summary(self) -> str:
        """One line."""
        if not self.verdicts:
            return "no kernel: no composite matched, so nothing was verified"
        runs = sum(len(v.compared) for v in self.verdicts)
        found = ", ".join(f"{n} {status}" for status, n in sorted(self.counts.items()))
        count = len(self.verdicts)
        kernels = f"{count} kernel{'s' if count > 1 else ''}"
        by = f"; run by {self.ran_by}" if self.ran_by else ""
        without = [v for v in self.verdicts if any(c.kind == REFERENCE for c in v.checks)]
        names = ", ".join(dict.fromkeys(v.composite for v in without))
        left = f"; not compared: the reference of {names}" if names else ""
        return f"{kernels}: {found}; {runs} runs agree with the reference{by}{left}"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
