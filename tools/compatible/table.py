"""Which TVMs, Pythons, NumPys and CPUs are tried together, and what each is installed from."""

from __future__ import annotations

from dataclasses import dataclass

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
USUAL = "3.11"  # what is tried with everything
NEWEST = "2"  # of NumPy: whatever pip takes for that Python

# The TVMs with Relax and the apache-tvm-ffi that each loads with. 0.25's library lacks a symbol
# under any later one; what is newer than 0.1.14 ends the process (docs/makers/tvm-notes.md).
RELAX = {
    "0.25": ("apache-tvm==0.25.0.post1", "apache-tvm-ffi==0.1.12"),
    "0.26": ("apache-tvm==0.26.0", "apache-tvm-ffi==0.1.14.post1"),
    "0.27": ("apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post1"),
}
RELAY = "0.17"
NUMPY = {"1.26": "numpy==1.26.4", NEWEST: "numpy>=2"}


@dataclass(frozen=True)
class Combination:
    """One row of the table."""

    tvm: str
    python: str = USUAL
    numpy: str = NEWEST
    hides_avx512: bool = False

    @property
    def is_relay(self) -> bool:
        """Whether this is the generation with Relay."""
        return self.tvm == RELAY

    @property
    def environment(self) -> str:
        """The name of its virtual environment, which CPUs share."""
        return f"tvm{self.tvm}-python{self.python}-numpy{self.numpy}"

    @property
    def name(self) -> str:
        """What it is called on the command line and in files."""
        return self.environment + ("-avx2" if self.hides_avx512 else "")


def _combinations() -> list[Combination]:
    newest = next(reversed(RELAX))
    both = (newest, RELAY)
    return [
        *(Combination(tvm) for tvm in (*RELAX, RELAY)),
        *(Combination(tvm, python=p) for tvm in both for p in PYTHONS if p != USUAL),
        *(Combination(tvm, numpy="1.26") for tvm in both),
        *(Combination(tvm, hides_avx512=True) for tvm in both),
    ]


COMBINATIONS = _combinations()
BY_NAME = {combination.name: combination for combination in COMBINATIONS}
