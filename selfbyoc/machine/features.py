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
    name, triple = str(found.get("mcpu", "")), str(found.get("mtriple") or "")
    _check_triple(triple)
    for feature in found.get("mattr") or ():
        _check_feature(feature, triple)
    if "mcpu" in found and not _is_known(name, triple):
        raise TargetError(f"target: {_unknown(name, triple)}")


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


def _check_feature(feature: str, triple: str) -> None:
    sign, name = feature[:1], feature[1:]
    if sign not in ("+", "-"):
        raise TargetError(
            f"target: -mattr={feature}: LLVM ignores a feature without a sign; write "
            f"+{feature} or -{feature}"
        )
    if name not in _features(triple, "", (f"+{name}",)):
        of = f" of {triple}" if triple else ""
        version = tvm.target.codegen.llvm_version_major()
        raise TargetError(f"target: -mattr={feature}: LLVM {version} knows no such feature{of}")


def _is_known(name: str, triple: str) -> bool:
    """LLVM's list leaves out second names: apple-m1, which it calls apple-a14, and grace."""
    if name in known_cpus(triple):
        return True
    is_valid = getattr(tvm.target.codegen, "llvm_is_valid_cpu", None)  # 0.17 has no such question
    return bool(is_valid and is_valid(name, triple or f"{platform.machine()}-linux-gnu"))


@cache
def known_cpus(triple: str = "") -> tuple[str, ...]:
    """Every -mcpu that this TVM's LLVM knows for a triple, the host's if it is empty."""
    asked = make_target({"kind": "llvm", **({"mtriple": triple} if triple else {})})
    return tuple(sorted(str(x) for x in tvm.target.codegen.llvm_get_cpu_archlist(asked)))


def _unknown(name: str, triple: str) -> str:
    """What is wrong with a -mcpu, and what to write instead."""
    version = tvm.target.codegen.llvm_version_major()
    of = f" of {triple}" if triple else ""
    near = _nearest(name, known_cpus(triple))
    nearest = f"; the nearest known are {', '.join(near)}" if near else ""
    x86 = architecture({"kind": "llvm", **({"mtriple": triple} if triple else {})}) == "x86_64"
    more = "+avx2,+fma" if x86 else "+dotprod,+fullfp16"
    return (
        f"LLVM {version} knows no -mcpu={name}{of}{nearest}. Describe a CPU that it lacks by a "
        f"known one and the features beyond it: llvm -mcpu={near[0] if near else 'generic'} "
        f"-mattr={more}"
    )


def _nearest(name: str, known: tuple[str, ...]) -> list[str]:
    """The two next older CPUs of its line, or names that look like it."""
    name = name.lower()
    for line in _LINES:
        if name in line:
            return [x for x in line[line.index(name) :] if x in known][:2]
    starts = [x for x in known if len(name) > 2 and x.startswith(name)]
    return (starts + [x for x in difflib.get_close_matches(name, known) if x not in starts])[:3]


@cache
def _features(triple: str, cpu: str, wanted: tuple[str, ...]) -> frozenset[str]:
    asked = {"kind": "llvm", "mtriple": triple, "mcpu": cpu, "mattr": list(wanted)}
    target = make_target({name: value for name, value in asked.items() if value})
    found = {str(x) for x in tvm.target.codegen.llvm_get_cpu_features(target)}
    return frozenset(found) | _BASELINE.get(architecture(target), frozenset())
