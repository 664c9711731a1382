"""The machines that plans are asked for: targets of the table of cores
(`selfbyoc/machine/cores.py`), and odd ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

from selfbyoc.errors import TargetError
from selfbyoc.machine import Machine, machine
from selfbyoc.tvm import make_target

_ARM = "aarch64-linux-gnu"
# By what they have: AVX-512, AVX2, SSE and NEON.
CPUS: dict[str, str] = {
    **dict.fromkeys(
        (
            "skylake-avx512",
            "cascadelake",
            "x86-64-v4",
            "sapphirerapids",
            "cooperlake",
            "znver4",
            "znver5",
        ),
        "",
    ),
    **dict.fromkeys(("haswell", "x86-64-v3", "znver1", "znver3", "alderlake"), ""),
    **dict.fromkeys(("nehalem", "x86-64"), ""),
    **dict.fromkeys(("neoverse-n1", "neoverse-v1", "cortex-a72", "apple-m1"), _ARM),
}
CORES = (1, 1, 2, 2, 3, 4, 6, 7, 8, 12, 16, 24, 31, 32, 48, 64)
L1_SIZES = (16 << 10, 32 << 10, 128 << 10)
L2_SIZES = (128 << 10, 256 << 10, 512 << 10, 2 << 20, 16 << 20)
ODD = 0.2  # of the machines have other caches than their CPU


@cache
def usual(cpu: str) -> Machine:
    """A CPU as the table has it."""
    return replace(machine(make_target(text(cpu))), cores=1)


def text(cpu: str) -> str:
    """The target of a CPU."""
    return f"llvm -mcpu={cpu}" + (f" -mtriple={CPUS[cpu]}" if CPUS[cpu] else "")


@cache
def known() -> tuple[str, ...]:
    """The CPUs that this TVM's LLVM knows."""
    return tuple(cpu for cpu in CPUS if _is_known(cpu))


def _is_known(cpu: str) -> bool:
    try:
        usual(cpu)
    except TargetError:
        return False
    return True


def draw(rng: Random) -> tuple[str, Machine]:
    """A CPU's name, and it with any number of cores; now and then with other caches."""
    cpu = rng.choice(known())
    made = replace(usual(cpu), cores=rng.choice(CORES))
    if rng.random() >= ODD:
        return cpu, made
    return cpu, replace(made, l1_bytes=rng.choice(L1_SIZES), l2_bytes=rng.choice(L2_SIZES))
