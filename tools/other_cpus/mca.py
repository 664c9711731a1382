"""llvm-mca on a loop: its multiply-adds a cycle as a share of the CPU's peak.

The peak is llvm-mca's own figure for independent multiply-adds in registers, so that a share
compares two answers of one model. Loads are taken to hit L1.
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
def peak(cpu: CPU, vector_bytes: int) -> float:
    """Multiply-adds of float32 a cycle where none waits for another, nor for memory."""
    lanes = vector_bytes // 4
    return max(_AT_ONCE * lanes / cycles(code, cpu) for code in _independent(cpu, vector_bytes))


def _independent(cpu: CPU, vector_bytes: int) -> list[str]:
    """As many multiply-adds as hide their latency, each with a sum of its own; for AArch64 also
    with a factor that is one lane, which the model of Apple's CPUs takes more of.
    """
    numbers = range(_AT_ONCE)
    if cpu.is_arm:
        factors = ("v31.4s", "v31.s[0]")
        return ["\n".join(f"fmla v{n}.4s, v30.4s, {x}" for n in numbers) for x in factors]
    if vector_bytes == 16:  # no multiply-add: products, and as many sums
        pairs = (f"mulps %xmm15, %xmm{n % 6}\naddps %xmm15, %xmm{6 + n % 6}" for n in numbers)
        return ["\n".join(pairs)]
    kind = {32: "y", 64: "z"}[vector_bytes]
    code = (f"vfmadd231ps %{kind}mm14, %{kind}mm15, %{kind}mm{n}" for n in numbers)
    return ["\n".join(code)]


def share(loop: Loop, cpu: CPU) -> Share:
    """What a loop reaches of the peak of the widest vectors that code for this CPU uses."""
    found = cycles("\n".join(loop.lines), cpu)
    widest = machine(make_target(cpu.target)).vector_bytes
    return Share(loop, found, loop.multiply_adds / found, peak(cpu, widest))
