"""What programs are built with and for: a program in three for a CPU other than the host's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ...codegen.target import host_target
from ...errors import TargetError
from ...machine import host
from ...partition import check_target
from ...tvm import make_target, target_dict
from ...tvm.types import Target
from .like.mutant import Mutant
from .program import Program

SHARE = 1 / 3  # of programs
# By what they have: SSE, AVX2, AVX-512; where they differ in caches or in units.
_CPUS = ("x86-64", "nehalem", "haswell", "x86-64-v3", "znver3", "skylake-avx512", "icelake-server")


@dataclass(frozen=True)
class Setting:
    """What all programs of a run are built with: the target, files of composites, and how much LLVM
    makes of machine code.
    """

    target: str | None = None
    composites: tuple[str, ...] = ()
    opt_level: int | None = None  # 0 saves a third of the time; None is what the target says

    def of(self, program: Program | Mutant) -> Target:
        """The target of a program or a mutant, which may name one of its own."""
        told = program.target or self.target
        made = host_target() if told is None else check_target(told)
        if self.opt_level is None:
            return made
        return make_target({**target_dict(made), "opt-level": self.opt_level})


@cache
def others() -> tuple[str, ...]:
    """As text; none on what is no x86."""
    return tuple(t for t in (f"llvm -mcpu={cpu}" for cpu in _CPUS) if _runs(t))


def _runs(target: str) -> bool:
    try:
        made = check_target(target)
    except TargetError:  # this LLVM does not know the CPU
        return False
    return str(made) != str(host_target()) and not host.cannot_run(made)
