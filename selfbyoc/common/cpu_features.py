"""What this machine's CPU can do and its system allows, by LLVM's names.

A CPU's name is no proof: a hypervisor, a kernel or an emulator may show less than the name
promises. On x86 the C library tells (glibc 2.33, `__x86_get_cpuid_feature_leaf`): it asks the
processor itself, hence is right under qemu-user too, where /proc/cpuinfo shows the machine below,
and says which register files the system saves. /proc/cpuinfo serves where the C library is older
or another. On ARM the kernel's HWCAP bits tell, which qemu-user answers as well.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterable, Mapping
from functools import cache

PRETENDED = "SELFBYOC_CPU"  # the environment's name of a lesser CPU to be
SPELLINGS = {"amd64": "x86_64", "arm64": "aarch64"}

_EBX, _ECX, _EDX, _EAX = 1, 2, 3, 0
# Rows of the C library's table (sys/platform/x86.h): CPUID 1, 7, 80000001h and 7 subleaf 1.
_LEAF1, _LEAF7, _EXTENDED, _LEAF7_1 = 0, 1, 2, 6

# Only what LLVM may put into ordinary code by itself counts. What needs an intrinsic (aes, sha,
# pclmul, crc32, rdrnd, avx512vp2intersect, amx), is for the system (sgx, invpcid, xsave, pku, kl),
# writes through or past the cache on request (clwb, clzero, movdiri), or is skipped by a CPU that
# lacks it (prfchw, prefetchwt1) is in many CPUs' lists and in no kernel. sse and sse2 are in
# every x86-64. LLVM's name: row, register and bit of CPUID, name in /proc/cpuinfo.
X86: dict[str, tuple[int, int, int, str]] = {
    "sse3": (_LEAF1, _ECX, 0, "pni"),
    "ssse3": (_LEAF1, _ECX, 9, "ssse3"),
    "sse4.1": (_LEAF1, _ECX, 19, "sse4_1"),
    "sse4.2": (_LEAF1, _ECX, 20, "sse4_2"),
    "popcnt": (_LEAF1, _ECX, 23, "popcnt"),
    "movbe": (_LEAF1, _ECX, 22, "movbe"),
    "sse4a": (_EXTENDED, _ECX, 6, "sse4a"),
    "lzcnt": (_EXTENDED, _ECX, 5, "abm"),
    "tbm": (_EXTENDED, _ECX, 21, "tbm"),
    "bmi": (_LEAF7, _EBX, 3, "bmi1"),
    "bmi2": (_LEAF7, _EBX, 8, "bmi2"),
    "gfni": (_LEAF7, _ECX, 8, "gfni"),
    "avx": (_LEAF1, _ECX, 28, "avx"),
    "f16c": (_LEAF1, _ECX, 29, "f16c"),
    "fma": (_LEAF1, _ECX, 12, "fma"),
    "xop": (_EXTENDED, _ECX, 11, "xop"),
    "fma4": (_EXTENDED, _ECX, 16, "fma4"),
    "avx2": (_LEAF7, _EBX, 5, "avx2"),
    "avxvnni": (_LEAF7_1, _EAX, 4, "avx_vnni"),
    "avxifma": (_LEAF7_1, _EAX, 23, "avx_ifma"),
    "avxvnniint8": (_LEAF7_1, _EDX, 4, "avx_vnni_int8"),
    "avxneconvert": (_LEAF7_1, _EDX, 5, "avx_ne_convert"),
    "avxvnniint16": (_LEAF7_1, _EDX, 10, "avx_vnni_int16"),
    "avx512f": (_LEAF7, _EBX, 16, "avx512f"),
    "avx512dq": (_LEAF7, _EBX, 17, "avx512dq"),
    "avx512ifma": (_LEAF7, _EBX, 21, "avx512ifma"),
    "avx512cd": (_LEAF7, _EBX, 28, "avx512cd"),
    "avx512bw": (_LEAF7, _EBX, 30, "avx512bw"),
    "avx512vl": (_LEAF7, _EBX, 31, "avx512vl"),
    "avx512vbmi": (_LEAF7, _ECX, 1, "avx512vbmi"),
    "avx512vbmi2": (_LEAF7, _ECX, 6, "avx512_vbmi2"),
    "avx512vnni": (_LEAF7, _ECX, 11, "avx512_vnni"),
    "avx512bitalg": (_LEAF7, _ECX, 12, "avx512_bitalg"),
    "avx512vpopcntdq": (_LEAF7, _ECX, 14, "avx512_vpopcntdq"),
    "avx512fp16": (_LEAF7, _EDX, 23, "avx512_fp16"),
    "avx512bf16": (_LEAF7_1, _EAX, 5, "avx512_bf16"),
}
# These count too, but neither source knows them everywhere: the CPU's name has to do. They are
# AVX10 and APX.
BY_NAME = frozenset(
    {"avx10.1", "avx10.2", "egpr", "ndd", "nf", "ccmp", "cf", "zu", "ppx", "push2pop2", "jmpabs"}
)
_SCALAR = frozenset(
    {"sse3", "ssse3", "sse4.1", "sse4.2", "sse4a", "popcnt", "movbe", "lzcnt", "tbm", "bmi", "bmi2",
     "gfni"}
)  # fmt: skip

# LLVM's name: which word of the auxiliary vector, and its bit (the kernel's asm/hwcap.h). For the
# same reason without aes, crc, sme and the like; sha3 counts for its exclusive-or of three.
_HWCAP, _HWCAP2 = 16, 26
ARM64: dict[str, tuple[int, int]] = {
    "fp-armv8": (_HWCAP, 0),
    "neon": (_HWCAP, 1),
    "lse": (_HWCAP, 8),
    "fullfp16": (_HWCAP, 10),
    "rdm": (_HWCAP, 12),
    "complxnum": (_HWCAP, 14),
    "rcpc": (_HWCAP, 15),
    "sha3": (_HWCAP, 17),
    "dotprod": (_HWCAP, 20),
    "sve": (_HWCAP, 22),
    "fp16fml": (_HWCAP, 23),
    "rcpc-immo": (_HWCAP, 26),
    "sve2": (_HWCAP2, 1),
    "fptoint": (_HWCAP2, 8),
    "i8mm": (_HWCAP2, 13),
    "bf16": (_HWCAP2, 14),
    "cssc": (_HWCAP2, 34),
    "sve2p1": (_HWCAP2, 36),
    "mops": (_HWCAP2, 43),
}


def architecture(name: str = "") -> str:
    """This machine's, or one of this name, as the system spells it: 'x86_64', 'aarch64', ..."""
    found = (name or platform.machine()).lower()
    return SPELLINGS.get(found, found)


def surely_has(wanted: str, needed: Iterable[str]) -> bool:
    """Whether this is such a machine with these features, as far as can be told without LLVM."""
    found = detected(wanted) if wanted == architecture() else None
    return found is not None and not os.environ.get(PRETENDED) and found >= set(needed)


@cache
def detected(architecture: str) -> frozenset[str] | None:
    """The features in force here of those that count; None where no source knows them."""
    if architecture == "x86_64":
        return _x86()
    return _arm64() if architecture == "aarch64" else None


def countable(architecture: str) -> frozenset[str] | None:
    """The features that code may need; None where all of LLVM's have to count."""
    known = {"x86_64": BY_NAME | X86.keys(), "aarch64": frozenset(ARM64)}
    return known.get(architecture)


def _x86() -> frozenset[str] | None:
    rows = _cpuid()
    if rows is not None:
        return from_cpuid(rows)
    flags = cpuinfo()
    return frozenset(n for n, (*_, flag) in X86.items() if flag in flags) if flags else None


def from_cpuid(rows: Mapping[int, tuple[int, ...]]) -> frozenset[str]:
    """The features by rows of eight words: CPUID's registers, then those that are in force."""
    has = {n for n, (row, register, bit, _) in X86.items() if rows[row][register] >> bit & 1}
    force = {n for n, (row, register, bit, _) in X86.items() if rows[row][register + 4] >> bit & 1}
    # A C library marks only what it knew when it was built, so the two register files speak for
    # what came later.
    vectors = {n for n in has - _SCALAR if "avx" in force and not n.startswith("avx512")}
    wide = {n for n in has if "avx512f" in force and n.startswith("avx512")}
    return frozenset(has & _SCALAR | vectors | wide)


def _cpuid() -> dict[int, tuple[int, ...]] | None:
    """The C library's table, where it has one."""
    ask = getattr(ctypes.CDLL(None), "__x86_get_cpuid_feature_leaf", None)
    if ask is None:
        return None
    ask.argtypes, ask.restype = (ctypes.c_uint,), ctypes.POINTER(ctypes.c_uint * 8)
    return {row: tuple(ask(row).contents) for row in (_LEAF1, _LEAF7, _EXTENDED, _LEAF7_1)}


def cpuinfo() -> frozenset[str]:
    """The flags of the first CPU in /proc/cpuinfo; none where there is no such file."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            line = next((x for x in file if x.startswith("flags")), "")
    except OSError:  # no Linux
        return frozenset()
    return frozenset(line.partition(":")[2].split())


def _arm64() -> frozenset[str] | None:
    ask = getattr(ctypes.CDLL(None), "getauxval", None)
    if ask is None:
        return None
    ask.argtypes, ask.restype = (ctypes.c_ulong,), ctypes.c_ulong
    words = {word: int(ask(word)) for word in (_HWCAP, _HWCAP2)}
    return frozenset(name for name, (word, bit) in ARM64.items() if words[word] >> bit & 1)
