"""The target that a kernel is built for, and the host's own."""

from __future__ import annotations

from typing import Any

from ..common.threads import core_count
from ..errors import TargetError
from ..machine import host
from ..machine.features import check_cpu
from ..tvm import make_target, target_dict
from ..tvm.types import Attr, Target

# What decides whether a kernel runs where the rest of the model does.
_DECISIVE = ("kind", "mtriple", "mcpu", "mattr", "mabi", "arch")


def agree(asked: dict[str, Attr] | None, building: Target | None, symbol: str) -> Target:
    """The kernel's target: what partitioning was given, what the user builds for, or the host's
    CPU.
    """
    if building is not None:
        check_cpu(building)
    if asked is None:
        return building if building is not None else host_target()
    if building is not None:
        found, wanted = decisive(target_dict(building)), decisive(asked)
        if found != wanted:
            raise TargetError(
                f"{symbol}: partition_for_tefuse was given the target {wanted}, but the module is "
                f"built for {found}"
            )
        return building
    return make_target(asked)


def same_machine(built: Target, compiling: Target) -> bool:
    """Whether a kernel built for one target runs, and is meant to run, where the other does."""
    return decisive(target_dict(built)) == decisive(target_dict(compiling))


def decisive(target: dict[str, Attr]) -> dict[str, Attr]:
    """What of a target (as data) names the machine."""
    return {name: target[name] for name in _DECISIVE if target.get(name)}


def host_target() -> Target:
    """This machine's CPU with its real vector width and number of cores, without what its system
    or hypervisor keeps from it.
    """
    found: dict[str, Any] = {"kind": "llvm", "num-cores": core_count()}
    if host.cpu():
        found["mcpu"] = host.cpu()
    if off := host.switched_off():
        found["mattr"] = list(off)
    return make_target(found)


def short_text(target: Target) -> str:
    """The kind of a target and its CPU, for messages."""
    known = target_dict(target)
    return " ".join(str(known[name]) for name in ("kind", "mcpu") if known.get(name))
