"""What a schedule needs to know of the machine, as one value made from the target."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

_AVX512 = (
    "avx512", "x86-64-v4", "znver4", "znver5", "skylake-avx512", "cascadelake", "cooperlake",
    "cannonlake", "icelake", "tigerlake", "rocketlake", "sapphirerapids", "emeraldrapids",
    "graniterapids",
)  # fmt: skip
_AVX2 = (
    "avx2", "x86-64-v3", "core-avx2", "haswell", "broadwell", "skylake", "znver", "alderlake",
    "raptorlake", "arrowlake",
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """A CPU: its vectors (in bytes), registers and cores."""

    vector_bytes: int
    vector_registers: int
    cores: int = 1

    def lanes(self, dtype: str) -> int:
        """Elements of a dtype in one vector register."""
        bits = int("".join(c for c in str(dtype) if c.isdigit()) or 32)
        return max(1, self.vector_bytes * 8 // bits)


def _names(target: Any) -> str:
    """What a target says of its CPU, features that it switches off aside."""
    attrs = target.attrs
    features = [str(m) for m in attrs.get("mattr") or [] if not str(m).startswith("-")]
    return " ".join([str(attrs.get("mcpu") or ""), *features, str(attrs.get("mtriple") or "")])


def machine(target: Any) -> Machine:
    """The machine that a target describes; what it leaves open is the least of its kind."""
    names = _names(target)
    cores = int(target.attrs.get("num-cores") or 0) or len(os.sched_getaffinity(0))
    if any(flag in names for flag in _AVX512):
        return Machine(64, 32, cores)
    if any(flag in names for flag in _AVX2):
        return Machine(32, 16, cores)
    if "aarch64" in names or "arm" in names:
        return Machine(16, 32, cores)
    return Machine(16, 16, cores)  # SSE2: every x86-64 has it
