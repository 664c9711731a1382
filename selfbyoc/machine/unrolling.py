"""The CPU by whose model LLVM schedules a kernel: one that leaves its loops as they are."""

from __future__ import annotations

from ..tvm import make_target, target_dict
from ..tvm.types import Target
from .features import features_of, known_cpus

# LLVM's models of Zen 3 and later say that the core keeps thousands of instructions decoded, so it
# unrolls loops that are register tiles already: two steps of k may want more than 16 registers, and
# a sum goes through memory at each step. 112x14x14 to 672 by 1x1, one core of Zen 3: 578 us, by the
# model of Zen 2 381. Where two steps fit they are faster: a depthwise 5x5 with a 1x1, 128x100x76,
# 3.93 ms and 4.08 (Nov 2026). With 32 registers they do.
_UNROLLING = ("znver3", "znver4", "znver5", "znver6")
_LIKE = "znver2"


def without_unrolling(target: Target) -> Target:
    """The target with the same instructions, whose loops LLVM does not unroll."""
    given, features = target_dict(target), features_of(target)
    unrolls = given.get("mcpu") in _UNROLLING and "avx512f" not in features
    if not unrolls or _LIKE not in known_cpus(str(given.get("mtriple") or "")):
        return target
    like = {**given, "mcpu": _LIKE, "mattr": []}
    own = features_of(like)
    changed = [f"+{name}" for name in features - own] + [f"-{name}" for name in own - features]
    return make_target({**like, "mattr": sorted(changed)})
