"""The target that a kernel is built for, and the host's own."""

from __future__ import annotations

import os
import platform
from typing import Any

from .._tvm import make_target, target_dict, tvm
from ..errors import TargetError

# What decides whether a kernel runs where the rest of the model does.
_DECISIVE = ("kind", "mtriple", "mcpu", "mattr", "mabi", "arch")


def agree(asked: dict[str, Any] | None, building: Any | None, symbol: str) -> Any:
    """The kernel's target: what partitioning was told, what the user builds for, or the host's
    CPU.
    """
    if asked is None:
        return building if building is not None else host_target()
    if building is not None:
        found, wanted = _decisive(target_dict(building)), _decisive(asked)
        if found != wanted:
            raise TargetError(
                f"{symbol}: partition_for_tefuse was told the target {wanted}, but the module is "
                f"built for {found}"
            )
        return building
    return make_target(asked)


def same_machine(built: Any, compiling: Any) -> bool:
    """Whether a kernel built for one target runs, and is meant to run, where the other does."""
    return _decisive(target_dict(built)) == _decisive(target_dict(compiling))


def _decisive(target: dict[str, Any]) -> dict[str, Any]:
    return {name: target[name] for name in _DECISIVE if target.get(name)}


def host_target() -> Any:
    """This machine's CPU with its real vector width and number of cores."""
    found: dict[str, Any] = {"kind": "llvm", "num-cores": len(os.sched_getaffinity(0))}
    cpu = host_cpu()
    if cpu:
        found["mcpu"] = cpu
    return make_target(found)


def host_cpu() -> str:
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
