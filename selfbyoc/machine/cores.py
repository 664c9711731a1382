"""Cores of CPUs by LLVM's names: what their vector units and caches can do.

From the vendors' optimisation guides and uops.info (multiply-adds of float32 vectors of the full
width). Where LLVM has several names for a core, one stands for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Core:
    """Full vectors a cycle, cycles, KiB of caches (L3 of a small package), bytes a cycle
    from memory and from L2.
    """

    multiply_adds: int
    loads: int
    latency: int
    l1: int
    l2: int
    l3: int = 0
    memory_bandwidth: float = 4.0
    l2_bandwidth: float = 32.0
    division: int = 10  # cycles from one vector of quotients to the next
    bfloat16: float = 0.0  # vectors of words of two a cycle, which are multiplied and added

    @property
    def l3_bandwidth(self) -> float:
        """As plans take it: three times what memory gives a core."""
        return 3 * self.memory_bandwidth


# Bytes from memory, where two cores read at once: 40 GB/s of znver5, 28 of znver3 (Nov 2026).
# The first whose name is a part of the target's -mcpu or triple.
_CORES: tuple[tuple[tuple[str, ...], Core], ...] = (
    # Words of two bfloat16 as often as floats: of Cooper Lake and Neoverse by LLVM's models, of Zen
    # 4 measured by IREE (pull request 15089: twice the speed of float32). Emerald Rapids takes four
    # steps for one instruction, and is half as fast as with floats (tpp-mlir, pull request 1025).
    (("skylake-avx512", "cascadelake", "cooperlake"),
     Core(2, 2, 4, 32, 1024, 11264, 5.0, bfloat16=2)),
    (("icelake-server",), Core(2, 2, 4, 48, 1280, 16384)),
    # Client cores have one 512-bit unit.
    (("icelake", "rocketlake", "cannonlake"), Core(1, 2, 4, 48, 512, 8192)),
    (("tigerlake",), Core(1, 2, 4, 48, 1280, 12288)),
    (("sapphirerapids", "emeraldrapids", "graniterapids", "diamondrapids"),
     Core(2, 2, 4, 48, 2048, 30720, bfloat16=0.5)),
    (("alderlake",), Core(2, 3, 4, 48, 1280, 20480, division=5)),
    (("raptorlake", "meteorlake"), Core(2, 3, 4, 48, 2048, 24576, division=5)),
    (("arrowlake", "lunarlake", "pantherlake"), Core(2, 3, 4, 48, 3072, 12288, division=5)),
    (("haswell", "broadwell", "core-avx2"), Core(2, 2, 5, 32, 256, 8192, division=14)),
    (("skylake",), Core(2, 2, 4, 32, 256, 8192, division=5)),
    (("x86-64-v4",), Core(2, 2, 4, 32, 1024)),
    (("x86-64-v3",), Core(2, 2, 5, 32, 256, division=14)),
    (("znver5", "znver6"), Core(2, 2, 4, 48, 1024, 32768, 5.0, bfloat16=2)),
    # 512-bit instructions take both 256-bit units.
    (("znver4",), Core(1, 1, 4, 32, 1024, 32768, 6.0, bfloat16=1)),
    (("znver3",), Core(2, 2, 4, 32, 512, 32768, 5.6, division=5)),
    (("znver2",), Core(2, 2, 5, 32, 512, 16384, division=5)),
    (("znver1",), Core(1, 1, 5, 32, 512, 8192)),
    (("neoverse-v2", "neoverse-v3", "grace"),
     Core(4, 3, 4, 64, 2048, 32768, 8.0, division=5, bfloat16=4)),
    (("neoverse-v1",), Core(4, 3, 4, 64, 1024, 32768, 8.0, bfloat16=4)),
    (("neoverse-n2", "neoverse-n3"), Core(2, 3, 4, 64, 1024, 32768, bfloat16=2)),
    (("neoverse",), Core(2, 2, 4, 64, 1024, 32768)),
    (("apple",), Core(4, 3, 4, 128, 3072, 8192, 16.0, division=2)),
    (("cortex-a72", "cortex-a57"), Core(2, 1, 7, 32, 512)),
)  # fmt: skip
# The least of the CPUs of the last ten years, by bytes of a vector.
_LEAST = {
    64: Core(1, 1, 4, 32, 1024),
    32: Core(2, 2, 5, 32, 256, division=14),
    16: Core(1, 1, 5, 32, 256, division=14),  # Haswell's caches, Nehalem's units
}


def core_of(names: str, vector_bytes: int) -> Core:
    """The core that a target names, or the least one of its vectors."""
    found = next((c for parts, c in _CORES if any(p in names for p in parts)), None)
    if found is None:
        return _LEAST[vector_bytes]
    least = _LEAST[vector_bytes]  # of half a vector a core does no less than the least one
    return replace(
        found,
        multiply_adds=max(found.multiply_adds, least.multiply_adds),
        loads=max(found.loads, least.loads),
    )
