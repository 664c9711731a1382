"""What a schedule needs to know of the machine, as one value made from the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import host
from .._tvm import current_target

_AVX512 = (
    "avx512", "x86-64-v4", "znver4", "znver5", "skylake-avx512", "cascadelake", "cooperlake",
    "cannonlake", "icelake", "tigerlake", "rocketlake", "sapphirerapids", "emeraldrapids",
    "graniterapids",
)  # fmt: skip
_AVX2 = (
    "avx2", "x86-64-v3", "core-avx2", "haswell", "broadwell", "skylake", "znver", "alderlake",
    "raptorlake", "arrowlake",
)  # fmt: skip
# KiB of a core's L1 data and L2 cache by a part of its name, from the vendors; the first that fits.
_CACHES = (
    ("skylake-avx512", 32, 1024), ("cascadelake", 32, 1024), ("cooperlake", 32, 1024),
    ("icelake-server", 48, 1280), ("icelake", 48, 512), ("rocketlake", 48, 512),
    ("tigerlake", 48, 1280), ("sapphirerapids", 48, 2048), ("emeraldrapids", 48, 2048),
    ("graniterapids", 48, 2048), ("alderlake", 48, 1280), ("raptorlake", 48, 2048),
    ("arrowlake", 48, 3072), ("znver5", 48, 1024), ("znver4", 32, 1024), ("znver", 32, 512),
    ("neoverse", 64, 1024), ("apple", 64, 4096),
)  # fmt: skip
# The least of the CPUs of the last ten years: Haswell to Skylake, Cortex-A57.
_LEAST_CACHES = (32, 256)


@dataclass(frozen=True)
class Machine:
    """A CPU: its vectors (in bytes), registers, cores, and the caches of one core."""

    vector_bytes: int
    vector_registers: int
    cores: int = 1
    l1_bytes: int = 32 << 10
    l2_bytes: int = 256 << 10

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
    cores = int(target.attrs.get("num-cores") or 0) or host.cores()
    return Machine(*_vectors(names), cores, *_caches(target, names))


def machine_at_hand() -> Machine:
    """What a compute is stacked for: the current target's machine, or the least one of all."""
    target = current_target()
    return Machine(16, 16) if target is None else machine(target)


def _vectors(names: str) -> tuple[int, int]:
    """Bytes of a vector register, and how many of them there are."""
    if any(flag in names for flag in _AVX512):
        return 64, 32
    if any(flag in names for flag in _AVX2):
        return 32, 16
    if "aarch64" in names or "arm" in names:
        return 16, 32
    return 16, 16  # SSE2: every x86-64 has it


def _caches(target: Any, names: str) -> tuple[int, int]:
    """Bytes of L1 and L2: what this machine tells of itself when it is the target, else a table."""
    l1, l2 = next(((l1, l2) for n, l1, l2 in _CACHES if n in names), _LEAST_CACHES)
    mcpu = str(target.attrs.get("mcpu") or "")
    found = host.cache_bytes() if mcpu and mcpu == host.cpu() else {}
    return found.get(1, l1 << 10), found.get(2, l2 << 10)
