"""This machine: its CPU as LLVM names it, its caches and its cores."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from ._tvm import tvm

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20}


def cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


@cache
def cpu() -> str:
    """The -mcpu of this machine as this TVM's LLVM knows it; '' where it is unknown."""
    name = str(tvm.target.codegen.llvm_get_system_cpu())
    return name if name not in ("generic", "x86-64") else _by_features()


def _by_features() -> str:
    """The newest CPU name that an old LLVM has for what this CPU can do; LLVM 10 takes no unknown
    -mcpu.
    """
    if platform.machine() != "x86_64":
        return ""
    flags = _cpu_flags()
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags:
        return "cascadelake" if "avx512_vnni" in flags else "skylake-avx512"
    if {"avx2", "fma"} <= flags:
        return "haswell"
    return ""


def _cpu_flags() -> set[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            line = next((x for x in file if x.startswith("flags")), "")
    except OSError:  # no Linux: the target stays without -mcpu
        return set()
    return set(line.partition(":")[2].split())


@cache
def cache_bytes(folder: Path = _CACHES) -> dict[int, int]:
    """Bytes of one core's data caches by level, where the system tells them."""
    found = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / n).read_text().strip() for n in ("level", "type", "size"))
        except OSError:  # an index without these files says nothing
            continue
        if kind != "Instruction" and size[:-1].isdigit() and size[-1] in _UNITS:
            found[int(level)] = int(size[:-1]) * _UNITS[size[-1]]
    return found
