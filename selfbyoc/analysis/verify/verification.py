"""`verify`: every composite of a model on its real shapes against references that are not ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING

from ...codegen.target import host_target
from ...errors import InputError
from ...partition import check_module, check_target, is_partitioned, partitioning
from ...tvm.types import IRModule, NDArray, Target
from .checks import TIMEOUT, Plan
from .inputs import KINDS
from .records import Verdict, Verification
from .run import ran_by
from .subjects import Subject, subjects
from .worker import can_isolate, in_place, isolated

if TYPE_CHECKING:
    from ...language.known import Composites


def verify(
    mod: IRModule,
    params: Mapping[str, NDArray] | None = None,
    target: Target | None = None,
    composites: Composites = None,
    *,
    kinds: Sequence[str] | None = None,
    seed: int = 0,
    isolate: bool = True,
    timeout: float = TIMEOUT,
    watch: Callable[[Verdict], None] | None = None,
) -> Verification:
    """Build every kernel of a model as the hook does, run it on edge inputs, compare with NumPy.

    mod, params, target, composites   as for partition_for_tefuse; a partitioned module serves too
    kinds      of inputs: "nan", "random", "zeros", "borders", "negative", "denormals", "large",
               "extremes", ...; None: all that say something of the kernel
    seed       of the random inputs
    isolate    in a process of its own: a kernel that crashes or hangs is reported, and the rest
               goes on; without it, or where the system has no fork, this process crashes or hangs
    timeout    seconds for one build, or one run with its references; what takes longer hangs
    watch      called with each verdict as it comes

    A kernel that cannot be built or that computes something else is in `.failed`, and no error.
    Raises InputError and TargetError, as partition_for_tefuse does; for a target of the kind
    "opencl" MissingExtra and ToolError, where no runtime serves here.
    """
    plan = Plan(verified_target(mod, target), check_kinds(kinds), seed, check_timeout(timeout))
    runtime, found = ran_by(plan.target), []
    for verdict in run(subjects_of(mod, params, target, composites, seed), plan, isolate=isolate):
        found.append(verdict)
        if watch is not None:
            watch(verdict)
    return Verification(tuple(found), str(plan.target), seed, runtime)


def run(what: Sequence[Subject], plan: Plan, *, isolate: bool) -> Iterable[Verdict]:
    """A verdict for each subject, in order."""
    return isolated(what, plan) if isolate and can_isolate() else in_place(what, plan)


def subjects_of(
    mod: IRModule,
    params: Mapping[str, NDArray] | None,
    target: Target | None,
    composites: Composites,
    seed: int = 0,
) -> list[Subject]:
    """The kernels of a module, partitioned or not."""
    check_module(mod)
    if is_partitioned(mod):
        return subjects(mod, None, seed)
    decided = partitioning(mod, params, target, composites)
    return subjects(decided.finish(pack=True), decided.finish(pack=False), seed)


def verified_target(mod: IRModule, target: Target | None) -> Target:
    """The target that kernels are built for: the given one, or the host's."""
    check_module(mod)
    return host_target() if target is None else check_target(target)


def check_kinds(kinds: Sequence[str] | None) -> Sequence[str] | None:
    """Known kinds of inputs, or an InputError."""
    if not isinstance(kinds, (NoneType, list, tuple, set, frozenset)):
        raise InputError(f"kinds: expected a list of names, found {type(kinds).__name__}")
    unknown = sorted({str(kind) for kind in kinds or ()} - set(KINDS))
    if unknown:
        raise InputError(f"kinds: {unknown} are unknown; expected some of {list(KINDS)}")
    return kinds


def check_timeout(timeout: float) -> float:
    """A positive number of seconds, or an InputError."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise InputError(f"timeout: expected seconds above 0, found {timeout!r}")
    return min(float(timeout), 1e6)  # as long as a system's call waits
