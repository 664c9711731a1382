"""Targets other than the host that run here: a program in three is built for one."""

from __future__ import annotations

from functools import cache

from .. import host
from ..codegen.target import host_target
from ..errors import TargetError
from ..partition import check_target

SHARE = 1 / 3  # of programs
# By what they have: SSE, AVX2, AVX-512; where they differ in caches or in units.
_CPUS = ("x86-64", "nehalem", "haswell", "x86-64-v3", "znver3", "skylake-avx512", "icelake-server")


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
