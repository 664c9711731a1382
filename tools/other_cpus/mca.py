"""llvm-mca on a loop: its multiply-adds a cycle as a share of the CPU's peak.

The peak is llvm-mca's own figure for independent multiply-adds in registers, by the instruction
that the loop has, so that a share compares two answers of one model. Loads are taken to hit L1.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

from selfbyoc.common import probes
from selfbyoc.errors import ToolError
from selfbyoc.machine import machine
from selfbyoc.tvm import make_target

from .cpus import CPU
from .loops import Loop
from .products import (
    BFDOT,
    FLOATS,
    MLA,
    PMADDWD,
    SDOT,
    SMLAL,
    USDOT,
    VDPBF16PS,
    VPDPBUSD,
    VPDPWSSD,
    Product,
    multiply_adds,
)

_NEWEST = 19  # of Debian 12; older ones lack the models of the newest CPUs
_TURNS = 50
# 50 additions, each of which waits for the one before: a cycle each, and two or three around.
_CHAIN, _ANSWER = "addl %eax, %eax\n", r"Total Cycles:\s+5[0-5]\n"
_QUESTION = ("-mtriple=x86_64", "-mcpu=haswell", "-iterations=50")
_AT_ONCE = 12  # multiply-adds: more than any latency times how many start in a cycle


@dataclass(frozen=True)
class Share:
    """A loop's cycles a turn, and its multiply-adds a cycle beside the most that there can be."""

    loop: Loop
    cycles: float
    per_cycle: float
    peak: float

    @property
    def share(self) -> float:
        """Of the peak."""
        return self.per_cycle / self.peak


@cache
def program() -> str:
    """The newest llvm-mca that serves. Raises ToolError."""
    broken = []
    for version in (_NEWEST + 2, _NEWEST + 1, _NEWEST):
        name = f"llvm-mca-{version}"
        if shutil.which(name) is None:
            continue
        if not (why := probes.program(name, [name, *_QUESTION], _ANSWER, given=_CHAIN)):
            return name
        broken.append(why)
    missing = f"llvm-mca {_NEWEST} is not installed: apt-get install llvm-{_NEWEST}"
    raise ToolError("; ".join(broken) or missing)


def cycles(code: str, cpu: CPU) -> float:
    """Cycles that llvm-mca tells for one more turn of a loop of this code."""
    return (_total(code, cpu, 3 * _TURNS) - _total(code, cpu, _TURNS)) / (2 * _TURNS)


def _total(code: str, cpu: CPU, turns: int) -> int:
    command = [program(), f"-mtriple={cpu.triple}", f"-mcpu={cpu.name}", f"-iterations={turns}"]
    command += ["-instruction-info=false", "-resource-pressure=false"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    total = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if total is None:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[:400]}")
    return int(total[1])


@cache
def peak(cpu: CPU, vector_bytes: int, product: Product) -> float:
    """Multiply-adds a cycle where none waits for another, nor for memory."""
    ways = _independent(cpu, vector_bytes, product)
    return max(sum(map(multiply_adds, code.splitlines())) / cycles(code, cpu) for code in ways)


# The model of Apple's CPUs takes more products of floats of which a factor is one lane.
_ARM = {
    FLOATS: ("fmla v{n}.4s, v30.4s, v31.4s", "fmla v{n}.4s, v30.4s, v31.s[0]"),
    SDOT: ("sdot v{n}.4s, v30.16b, v31.16b",),
    USDOT: ("usdot v{n}.4s, v30.16b, v31.16b",),
    SMLAL: ("smlal v{n}.4s, v30.4h, v31.4h",),
    BFDOT: ("bfdot v{n}.4s, v30.8h, v31.8h",),
    MLA: ("mla v{n}.4s, v30.4s, v31.4s",),
}
_AVX = {
    FLOATS: "vfmadd231ps {r}14, {r}15, {r}{n}",
    VPDPBUSD: "vpdpbusd {r}14, {r}15, {r}{n}",
    VPDPWSSD: "vpdpwssd {r}14, {r}15, {r}{n}",
    VDPBF16PS: "vdpbf16ps {r}14, {r}15, {r}{n}",
    PMADDWD: "vpmaddwd {r}14, {r}15, {r}13\nvpaddd {r}13, {r}{n}, {r}{n}",
}
# A product overwrites a factor: products and sums are in registers of their own.
_SSE = {
    FLOATS: "mulps {r}15, {r}{product}\naddps {r}15, {r}{sum}",
    PMADDWD: "pmaddwd {r}15, {r}{product}\npaddd {r}15, {r}{sum}",
}


def _independent(cpu: CPU, vector_bytes: int, product: Product) -> list[str]:
    """As many multiply-adds as hide their latency, each with a sum of its own, in each way that
    they can be written.
    """
    x86 = _SSE if vector_bytes == 16 else _AVX
    ways = _ARM[product] if cpu.is_arm else (x86[product],)
    register = {16: "%xmm", 32: "%ymm", 64: "%zmm"}[vector_bytes]
    half = _AT_ONCE // 2
    return [
        "\n".join(
            way.format(r=register, n=n, product=n % half, sum=half + n % half)
            for n in range(_AT_ONCE)
        )
        for way in ways
    ]


def share(loop: Loop, cpu: CPU) -> Share:
    """What a loop reaches of the peak of the widest vectors that code for this CPU uses."""
    found = cycles("\n".join(loop.lines), cpu)
    widest = machine(make_target(cpu.target)).vector_bytes
    return Share(loop, found, loop.multiply_adds / found, peak(cpu, widest, loop.product))
