"""What is known of a kernel's accesses, and by what means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

ANALYZER, ENUMERATION, OPEN, WRONG = "analyzer", "enumeration", "open", "wrong"
MATCH = "match"  # the run of a case that has no kernel
# How an output is written.
ONCE, SUMS, AGAIN = "once", "sums", "again"


# How a run ended.
PASSED, FAILED, CRASHED, HUNG, LEFT_OUT = "passed", "failed", "crashed", "hung", "left out"


@dataclass(frozen=True)
class Run:
    """One check that ran the kernel."""

    name: str
    status: str
    detail: str = ""


@dataclass(frozen=True)
class Answer:
    """An answer to one question: the means by which it is yes, or that it is not, and why."""

    means: str
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is yes."""
        return self.means in (ANALYZER, ENUMERATION)


@dataclass(frozen=True)
class Listed:
    """What is not proved: where, and why."""

    means: str  # OPEN, or WRONG: then there is a counterexample
    question: str
    buffer: str
    index: str
    reason: str

    def __str__(self) -> str:
        index = f"[{self.index}]" if self.index else ""
        return f"{self.question}: {self.buffer}{index}: {self.reason}"


@dataclass
class Proof:
    """One kernel: how many accesses are inside, by which means; its outputs; what is left."""

    inside: dict[str, int] = field(default_factory=dict)
    outputs: list[OutputProof] = field(default_factory=list)
    races: dict[str, int] = field(default_factory=dict)  # buffers that tasks share, by means
    listed: list[Listed] = field(default_factory=list)

    @property
    def wrong(self) -> Sequence[Listed]:
        """What there is a counterexample of."""
        return [item for item in self.listed if item.means == WRONG]


@dataclass(frozen=True)
class OutputProof:
    """How an output is written: whether everywhere, and how often."""

    name: str
    whole: Answer  # every element is written
    times: str  # ONCE; SUMS: once, and added to in place; AGAIN: some elements more than once
    again: int = 0  # elements that are written more than once
    means: str = OPEN


@dataclass(frozen=True)
class KernelBounds:
    """All that is known of a kernel for a target."""

    composite: str
    case: str
    target: str
    proof: Proof | None
    runs: Sequence[Run]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; what is open is no error."""
        ran = all(run.status in (PASSED, LEFT_OUT) for run in self.runs)
        return ran and self.proof is not None and not self.proof.wrong

    @property
    def is_kernel(self) -> bool:
        """Whether there is a kernel; of a case that does not match there is none."""
        return [run.name for run in self.runs] != [MATCH]

    @property
    def listed(self) -> list[Listed]:
        """What is not proved."""
        return self.proof.listed if self.proof is not None else []

    def to_dict(self) -> dict[str, object]:
        """As data."""
        return {**asdict(self), "ok": self.ok}
