"""What a CPU target's code may use: LLVM's names of its features.

features_of("llvm -mcpu=haswell -mattr=-fma")  # {'avx', 'avx2', 'f16c', ...}, no 'fma'
"""

from __future__ import annotations

import difflib
import platform
import re
from functools import cache

from ..common import cpu_features
from ..common.cpu_features import SPELLINGS
from ..errors import TargetError
from ..tvm import make_target, target_dict, tvm
from ..tvm.types import Attrs, Target

# LLVM 10 does not list them for a target without -mcpu, and takes them for granted in 64 bits.
_BASELINE = {"x86_64": frozenset({"64bit", "sse", "sse2"})}
# Whether a CPU must have "64bit", of the architectures that have CPUs of both widths.
_WIDE = {"x86_64": True, "riscv64": True, "riscv32": False}
# For an example: what CPUs have that their LLVM does not know.
_MORE = {"x86_64": "+avx2,+fma", "aarch64": "+dotprod,+fullfp16"}
# What TVM takes where a target has no -mcpu. LLVM 10 and 14 have none of that name for RISC-V, and
# end the process: "Cannot select", "CPU 'generic' is not supported".
_NO_CPU = "generic"
# Architectures whose names say a version, which LLVM's list leaves out.
_VERSIONS = re.compile(r"i[3-9]86|(arm|thumb)(eb)?v[4-9][a-z0-9.]*|arm64e|x86_64h")
# What an older LLVM knows of the same kind, newest first: LLVM 10 ends at znver2 and tigerlake.
_LINES = (
    ("znver6", "znver5", "znver4", "znver3", "znver2", "znver1"),
    ("diamondrapids", "graniterapids", "emeraldrapids", "sapphirerapids", "icelake-server",
     "cascadelake", "skylake-avx512"),
    ("pantherlake", "lunarlake", "arrowlake", "meteorlake", "raptorlake", "alderlake", "skylake",
     "haswell"),
    ("x86-64-v4", "skylake-avx512"),
    ("x86-64-v3", "haswell"),
    ("x86-64-v2", "nehalem"),
    ("neoverse-v3", "neoverse-v2", "neoverse-v1", "neoverse-n1"),
    ("neoverse-n3", "neoverse-n2", "neoverse-n1"),
    ("apple-m3", "apple-a16", "apple-m2", "apple-a15", "apple-m1", "apple-a14", "apple-a13"),
)  # fmt: skip


def features_of(target: Target | Attrs) -> frozenset[str]:
    """LLVM's names of all features of a target: its -mcpu's, changed by its -mattr. Empty for a
    target that LLVM does not compile for a CPU.
    """
    found = target_dict(make_target(target))
    if found["kind"] != "llvm":
        return frozenset()
    check_cpu(found)
    wanted = tuple(found.get("mattr") or ())
    return _features(str(found.get("mtriple") or ""), str(found.get("mcpu") or ""), wanted)


def architecture(target: Target | Attrs) -> str:
    """The target's architecture as the system spells it: 'x86_64', 'aarch64', ..."""
    found = target_dict(make_target(target))
    return cpu_features.architecture(str(found.get("mtriple") or "").partition("-")[0])


def check_cpu(target: Target | Attrs) -> None:
    """Refuse a -mtriple or -mcpu that LLVM does not know (it crashes, or compiles for the oldest
    CPU), and a -mattr that it would ignore.
    """
    found = target if isinstance(target, dict) else target_dict(make_target(target))
    if found.get("kind") != "llvm":
        return
    triple = str(found.get("mtriple") or "")
    _check_triple(triple)
    name = str(found.get("mcpu", _NO_CPU))
    if not _is_known(name, triple):
        raise TargetError(f"target: {_unknown(name, triple, 'mcpu' in found)}")
    for feature in found.get("mattr") or ():
        _check_feature(feature, triple, name)


def _check_triple(triple: str) -> None:
    """What LLVM's lists are asked of a triple that it cannot read ends the process."""
    name = triple.partition("-")[0]
    known = [str(x) for x in tvm.target.codegen.llvm_get_targets()]
    if triple and SPELLINGS.get(name, name) not in known and not _VERSIONS.fullmatch(name):
        near = difflib.get_close_matches(name, known)
        raise TargetError(
            f"target: -mtriple={triple}: LLVM knows no architecture {name!r}; expected one as in "
            f"x86_64-linux-gnu" + (f"; the nearest known are {', '.join(near)}" if near else "")
        )


def _check_feature(feature: str, triple: str, cpu: str) -> None:
    sign, name = feature[:1], feature[1:]
    if sign not in ("+", "-"):
        raise TargetError(
            f"target: -mattr={feature}: LLVM ignores a feature without a sign; write "
            f"+{feature} or -{feature}"
        )
    if name not in _features(triple, cpu, (f"+{name}",)):
        of = f" of {triple}" if triple else ""
        version = tvm.target.codegen.llvm_version_major()
        raise TargetError(f"target: -mattr={feature}: LLVM {version} knows no such feature{of}")


def _is_known(name: str, triple: str) -> bool:
    """LLVM's list leaves out second names: apple-m1, which it calls apple-a14, and grace."""
    if name in known_cpus(triple):
        return _fits(name, triple)
    is_valid = getattr(tvm.target.codegen, "llvm_is_valid_cpu", None)  # 0.17 has no such question
    return bool(is_valid and is_valid(name, triple or f"{platform.machine()}-linux-gnu"))


def _fits(name: str, triple: str) -> bool:
    """LLVM lists the CPUs of both widths, and ends the process where it compiles for the wrong."""
    wide = _WIDE.get(architecture(_named(triple)))
    if wide is None or name == _NO_CPU:
        return True
    found = _asked(triple.replace("riscv32", "riscv64", 1), name)  # LLVM 22 ends at that for 32
    if wide:
        return "64bit" in found
    # LLVM 15 and later say of those for 32 that they are so.
    return "32bit" in found or ("64bit" not in found and _NO_CPU not in known_cpus(triple))


@cache
def known_cpus(triple: str = "") -> tuple[str, ...]:
    """Every -mcpu that this TVM's LLVM knows for a triple, the host's if it is empty."""
    return tuple(sorted(str(x) for x in tvm.target.codegen.llvm_get_cpu_archlist(_named(triple))))


def _unknown(name: str, triple: str, is_given: bool) -> str:
    """What is wrong with a -mcpu, and what to write instead."""
    version, of = tvm.target.codegen.llvm_version_major(), architecture(_named(triple))
    fitting = [x for x in known_cpus(triple) if _fits(x, triple)]
    near = _nearest(name, fitting)
    nearest = f"; the nearest known are {', '.join(near)}" if near else ""
    example = near or [x for x in (_NO_CPU, *fitting) if x in fitting]
    whose = f" of {triple or of}" if triple or name in known_cpus(triple) else ""
    untold = "" if is_given else ", which TVM takes for a target without -mcpu"
    return (
        f"LLVM {version} knows no -mcpu={name}{whose}{untold}{nearest}. Describe a CPU that it "
        f"lacks by a known one and the features beyond it: llvm -mcpu={example[0]} "
        f"-mattr={_MORE.get(of, '+FEATURE')}"
    )


def _nearest(name: str, known: list[str]) -> list[str]:
    """The two next older CPUs of its line, or names that look like it."""
    name = name.lower()
    for line in _LINES:
        if name in line:
            return [x for x in line[line.index(name) :] if x in known][:2]
    starts = [x for x in known if len(name) > 2 and x.startswith(name)]
    return (starts + [x for x in difflib.get_close_matches(name, known) if x not in starts])[:3]


@cache
def _features(triple: str, cpu: str, wanted: tuple[str, ...]) -> frozenset[str]:
    return _asked(triple, cpu, wanted) | _BASELINE.get(architecture(_named(triple)), frozenset())


@cache
def _asked(triple: str, cpu: str, wanted: tuple[str, ...] = ()) -> frozenset[str]:
    target = _named(triple, mcpu=cpu, mattr=list(wanted))
    return frozenset(str(x) for x in tvm.target.codegen.llvm_get_cpu_features(target))


def _named(triple: str, **more: object) -> Target:
    told = {"kind": "llvm", "mtriple": triple, **more}
    return make_target({name: value for name, value in told.items() if value})
