"""This machine: its CPU as LLVM names it, what that can run, its caches and its cores."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from ..common import cpu_features
from ..errors import TargetError
from ..tvm import TVMError, make_target, target_dict, tvm
from ..tvm.types import Target
from .features import architecture, features_of, known_cpus
from .gpu import is_gpu

_EXTRAS = frozenset({"sse4a", "tbm"})
_SAPPHIRE_RAPIDS = frozenset({"avx512fp16", "avx512bf16", "avxvnni"})
_NEWEST = ("sapphirerapids", "cascadelake", "skylake-avx512", "haswell", "nehalem")

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20}


def cpu() -> str:
    """The -mcpu of this machine as this TVM's LLVM knows it; '' where it is unknown.

    The environment's SELFBYOC_CPU names a lesser one, to build and run as that machine would.
    """
    return _pretended() or _cpu()


def features() -> frozenset[str]:
    """LLVM's names of what code may use here, of the features that LLVM uses by itself."""
    return _features(_pretended())


def needed(target: Target) -> tuple[str, tuple[str, ...]]:
    """The architecture of a target's code, and the features that count which it may use."""
    made = target_dict(make_target(target))
    wanted = architecture(made)
    return wanted, tuple(sorted(_countable(features_of(made), wanted)))


def lacking(target: Target) -> tuple[str, ...]:
    """What a target's code may need and this machine lacks; nothing where it runs.

    Code for another architecture lacks that architecture. Only LLVM is told a CPU.
    """
    made = target_dict(make_target(target))
    if made["kind"] != "llvm":
        return ()
    wanted, names = needed(made)
    if wanted != architecture("llvm"):
        return (wanted,)
    return tuple(name for name in names if name not in features())


def runs(target: Target) -> bool:
    """Whether this machine runs code that is built for a target."""
    return not cannot_run(target)


def cannot_run(target: Target) -> str:
    """Why this machine cannot run what is built for a target, or ''."""
    made = target_dict(make_target(target))
    if made["kind"] != "llvm":
        return f"kernels for {made['kind']} are not run here"
    missing, here = lacking(made), architecture("llvm")
    if not missing:
        return ""
    if architecture(made) != here:
        return f"code for {named(made)} does not run on {here}"
    return (
        f"code for {named(made)} may use {', '.join(missing)}, which this machine "
        f"({cpu() or here}) lacks"
    )


def _no_cpu(target: Target) -> str:
    """The arrays of a library are in the CPU's memory."""
    made = make_target(target)
    if not is_gpu(made):
        return ""
    return f"{made.kind} has memory of its own, to which TVM's executors give arrays (docs/gpu.md)"


def _lacks(target: Target) -> str:
    return cannot_run(target) if lacking(target) else ""


def _no_runtime(target: Target) -> str:
    kind = str(target_dict(make_target(target))["kind"])
    try:
        known = kind == "c" or tvm.runtime.enabled(kind)
    except TVMError:  # of a kind that needs none
        return ""
    return "" if known else f"this TVM {tvm.__version__} is built without a runtime for {kind}"


def no_code(target: Target) -> str:
    """Why this TVM compiles nothing for a GPU target, or ''."""
    made = make_target(target)
    if not is_gpu(made) or tvm.get_global_func(f"target.build.{made.kind}", allow_missing=True):
        return ""
    return f"this TVM {tvm.__version__} is built without a code generator for {made.kind}"


def check_compiles(target: Target) -> None:
    """Refuse to build for a device that this TVM generates no code for."""
    if why := no_code(target):
        raise TargetError(
            f"target: {why}; build TVM with -DUSE_{str(make_target(target).kind).upper()}=ON, or "
            "name another target"
        )


def check_runs(target: Target, what: str) -> None:
    """Refuse to run something (`what`) that is built for another CPU, or for a device that this TVM
    has no runtime of; to build it is allowed.
    """
    if why := _no_runtime(target) or _no_cpu(target) or _lacks(target):
        raise TargetError(
            f"{what}: {why}; run it on such a machine, or build it for this one (target=None, or "
            "selfbyoc.host_target())"
        )


def fitted(target: Target) -> Target:
    """The target without AMD's extras (shuffles of bytes, bits of scalars), where they are all that
    keeps it from running here: znver3's code is then what an AVX2 machine of Intel's runs too.
    """
    missing = set(lacking(target))
    if not missing or missing - _EXTRAS:
        return make_target(target)
    found = target_dict(make_target(target))
    kept = [x for x in found.get("mattr") or () if x.lstrip("+") not in missing]
    found["mattr"] = [*kept, *(f"-{name}" for name in sorted(missing))]
    return make_target(found)


def switched_off() -> tuple[str, ...]:
    """The -mattr that this machine needs beside its -mcpu: what the name promises and the system
    does not give.
    """
    if not cpu():
        return ()
    named = _countable(features_of({"kind": "llvm", "mcpu": cpu()}), architecture("llvm"))
    return tuple(f"-{name}" for name in sorted(named - features()))


def named(target: Target) -> str:
    """The part of a target that names its CPU."""
    found = target_dict(make_target(target))
    parts = {name: found.get(name) for name in ("mtriple", "mcpu")}
    text = [f"-{name}={value}" for name, value in parts.items() if value]
    attrs = found.get("mattr") or ()
    return " ".join(["llvm", *text, *([f"-mattr={','.join(attrs)}"] if attrs else [])])


def _countable(names: frozenset[str], kind: str) -> frozenset[str]:
    counted = cpu_features.countable(kind)
    return names if counted is None else names & counted


def _pretended() -> str:
    """The CPU that SELFBYOC_CPU names, if this machine can do what it can."""
    name = os.environ.get(cpu_features.PRETENDED, "")
    if name:
        _check_pretended(name)
    return name


@cache
def _check_pretended(name: str) -> None:
    try:
        wanted = _countable(features_of({"kind": "llvm", "mcpu": name}), architecture("llvm"))
    except TargetError as err:
        why = str(err).removeprefix("target: ")
        raise TargetError(f"{cpu_features.PRETENDED}={name}: {why}") from err
    missing = sorted(wanted - _features(""))
    if missing:
        raise TargetError(
            f"{cpu_features.PRETENDED}={name}: this machine ({_cpu() or platform.machine()}) lacks "
            f"{', '.join(missing)}; name a CPU that can do no more than it"
        )


@cache
def _features(pretended: str) -> frozenset[str]:
    """Of the machine, or of the lesser CPU that it is told to be."""
    kind = architecture("llvm")
    named = features_of({"kind": "llvm", "mcpu": pretended or _cpu()} if _cpu() else "llvm")
    if pretended:
        return _countable(named, kind)
    found = cpu_features.detected(kind)
    if found is None:
        return _countable(named, kind)
    return found | named & cpu_features.BY_NAME


@cache
def _cpu() -> str:
    name = str(tvm.target.codegen.llvm_get_system_cpu())
    return _by_features("" if name in ("generic", "x86-64") else name)


def _by_features(name: str) -> str:
    """The newest CPU name that LLVM has for what this CPU can do, where the one that LLVM found
    says less: an old LLVM knows no newer one, and LLVM goes by the model's number, which a
    hypervisor may make up (a Granite Rapids as model 167, Rocket Lake, whose cores have one
    unit of 512 bits).
    """
    if architecture("llvm") != "x86_64":
        return name
    found = cpu_features.detected("x86_64") or frozenset()
    least = _of_name(name) if name else frozenset()
    known = [n for n in _NEWEST if n in known_cpus()]
    return next((n for n in known if least < _of_name(n) <= found), name)


def _of_name(name: str) -> frozenset[str]:
    return _countable(features_of({"kind": "llvm", "mcpu": name}), "x86_64")


def core() -> str:
    """The name of this machine's core: an LLVM that does not know it calls it an older one."""
    shown = cpu_features.detected(_architecture()) or frozenset()
    return "sapphirerapids" if not _pretended() and shown >= _SAPPHIRE_RAPIDS else cpu()


@cache
def _architecture() -> str:
    return architecture("llvm")


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
