"""`partition_for_tefuse`: which ops belong to which composite, marked for the external compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from ..common.interrupt import interruptible
from ..common.parts import begins
from ..errors import InputError, TargetError
from ..ir import declare  # noqa: F401 (TVM knows our ops from then on)
from ..language.known import Composites, listed, registry_of
from ..machine.features import check_cpu
from ..ops.half_weights import CONVOLUTIONS
from ..simplify.levels import DEQUANTIZES
from ..tvm import GENERATION, TVMError, make_target, tvm
from ..tvm.types import Expr, IRModule, NDArray, Target
from .extents import check_addressable, sizes_told
from .guard import Guard, settled
from .layouts.in_order import Decided
from .layouts.record import told_layouts
from .layouts.undone import undone
from .marked import Partitioning as Partitioning
from .nothing_matched import warn_of_nothing
from .refusal import Place, Refusal
from .report import REPORT, Report
from .source_names import names_of
from .within import refused_within, with_steps_told

if TYPE_CHECKING:
    from ..language.match.match import Match
    from ..language.registry import Registry


@interruptible()
def partition_for_tefuse(
    mod: tvm.IRModule,
    params: Mapping[str, NDArray] | None = None,
    target: Target | None = None,
    composites: Composites = None,
    *,
    pack: bool = True,
    guard: Guard | None = None,
) -> tvm.IRModule:
    """Mark what the composites match as functions for the external compiler `tefuse`.

    mod         a Relay or Relax module with `main`; it is not changed
    params      weights by name, bound as constants (then `pack` can lay them out ahead of time)
    target      what the kernels are built for; None: what the hook finds in force when it is called
    composites  instead of the built-in ones, earlier wins; `[mine, *selfbyoc.BUILTIN]` for both,
                "installed" for those of installed packages before them (`selfbyoc.installed`)
    pack        lay constant weights out as the composites ask for
    guard       may leave matches out: `selfbyoc.MeasuredGuard()` those that would not pay

    Raises InputError, TargetError, RegistryError, ToolError or ComputeError; what did not match is
    no error: `report(mod)`. Where nothing did, a MatchWarning.
    """
    check_module(mod)
    with sizes_told(mod):
        decided, refused = guarded(mod, params, target, composites, guard)
        warn_of_nothing(decided.report, refused, stacklevel=3)
        return decided.finish(pack=pack)


def guarded(
    mod: tvm.IRModule,
    params: Mapping[str, NDArray] | None,
    target: Target | None,
    composites: Composites,
    guard: Guard | None,
    refused: Mapping[Place, Refusal] | None = None,
) -> tuple[Partitioning, dict[Place, Refusal]]:
    """What remains when the guard has nothing more to leave out, and what it left out."""
    asked = listed(composites)
    return settled(lambda told: partitioning(mod, params, target, asked, told), guard, refused)


def partitioning(
    mod: tvm.IRModule,
    params: Mapping[str, NDArray] | None,
    target: Target | None,
    composites: Composites,
    refused: Mapping[Place, Refusal] | None = None,
) -> Partitioning:
    """Decide and mark. `refused` is why a composite (by name) must not be taken at a root op."""
    from .generation import ir
    from .generation import steps as loops

    begins("matching composites")
    check_module(mod)
    if is_partitioned(mod) and ir.external_functions(mod):  # none: all of them were unfused
        raise InputError(
            "mod: this module is partitioned already; give the module as it was before"
        )
    target = None if target is None else check_target(target)
    registry = registry_of(composites)
    prepared, matches, decided = decide_on(mod, params, registry, target=target, refused=refused)
    steps = {
        name: partitioning(part, None, target, composites, refused_within(name, refused))
        for name, part in loops.apart(mod).items()
    }
    told = with_steps_told(decided, {name: step.report for name, step in steps.items()})
    marked, matches = ir.mark(prepared, matches)
    return Partitioning(marked, registry, target, matches, told, names_of(mod), steps)


def is_partitioned(mod: tvm.IRModule) -> bool:
    """Whether `partition_for_tefuse` made this module."""
    return mod.attrs is not None and REPORT in mod.attrs.keys()  # noqa: SIM118 (no Python dict)


def decide_on(
    mod: tvm.IRModule,
    params: Mapping[str, NDArray] | None,
    registry: Registry,
    *,
    target: Target | None = None,
    strict: bool = True,
    refused: Mapping[Place, Refusal] | None = None,
) -> tuple[tvm.IRModule, list[Match], Report]:
    """A module as it is matched, and what is; see `decide`. Convolutions of levels are in the order
    of axes that their kernels read; weights of 8 and 16 bits that no composite reads as such are
    floats then, and matched once more.
    """
    from ..simplify.float_weights import with_float_weights
    from .generation import ir

    def told(prepared: tvm.IRModule) -> Decided:
        decided = decide(prepared, registry, target=target, strict=strict, refused=refused)
        return prepared, *decided

    def again(new: tvm.IRModule) -> Decided:
        return told(ir.prepare(new, None))

    prepared, matches, first = undone(told(ir.prepare(mod, params)), again)
    first = replace(first, layouts=first.layouts or told_layouts(mod))
    widened = {source for match in matches for source in _widened(match)}
    if first.left.keys().isdisjoint(_SAID_OF_FLOATS) and not widened:
        return prepared, matches, first
    taken = {source for match in matches for call in match.ops for source in call.sources}
    taken -= widened
    floats = with_float_weights(prepared, taken)
    if floats.same_as(prepared):
        return prepared, matches, first
    _, matches, decided = told(floats)
    decided = replace(decided.with_misses_of(first, DEQUANTIZES), layouts=first.layouts)
    return floats, matches, decided


# Left to TVM, these are floats, or products of floats.
_SAID_OF_FLOATS = (*DEQUANTIZES, "cast", "half_weight", "half_factor", "batch_matmul", "matmul")


def _widened(match: Match) -> Iterator[Expr]:
    """The IR nodes of convolutions, and of what makes floats of their weights of halves, whose
    composite lays no weight out: it would do so in each call.
    """
    for call in match.own.ops:
        if call.kind in CONVOLUTIONS and len(call.sources) > 1:
            name = match.own.role(call, 1)
            if not name or match.composite.pack_for(name) is None:
                yield from call.sources


def decide(
    prepared: tvm.IRModule,
    registry: Registry,
    *,
    target: Target | None = None,
    strict: bool = True,
    refused: Mapping[Place, Refusal] | None = None,
) -> tuple[list[Match], Report]:
    """The matches in a prepared module, and the reasons for all the rest; see `select`. What a
    compute looks at is tried out for the target; None: for the one in force, or the least machine.
    """
    from ..ir.generation import ir as reader
    from .generation import ir
    from .select import select

    graph, block_of = reader.read_at_sizes(prepared["main"]), ir.block_of(prepared)
    check_addressable(graph)
    with target or nullcontext():
        found, report = select(graph, registry, strict=strict, refused=refused, block_of=block_of)
    sizes = reader.sizes_read(prepared["main"])
    return found, replace(report, sizes=tuple((n, int(size)) for n, size in sizes.items()))


def check_module(mod: IRModule) -> None:
    """An IRModule of this generation with a `main`, or an InputError."""
    if not isinstance(mod, tvm.IRModule):
        raise InputError(f"mod: expected a tvm.IRModule, found {type(mod).__name__}")
    names = [gv.name_hint for gv in mod.get_global_vars()]
    if "main" not in names:
        raise InputError(f"mod: expected a function `main`, found {names or 'no functions'}")
    kind = type(mod["main"]).__module__
    if f"tvm.{GENERATION}." not in f"{kind}.":
        raise InputError(
            f"mod: expected `main` as a {GENERATION.capitalize()} function "
            f"(this is TVM {tvm.__version__}), "
            f"found {kind}.{type(mod['main']).__name__}"
        )


def check_target(target: Target) -> Target:
    """A Target, or a TargetError that says what was given."""
    if isinstance(target, str) and not target.strip():
        raise TargetError(f"target: expected one such as 'llvm -mcpu=znver3', found {target!r}")
    try:
        made = make_target(target)
    except (TVMError, ValueError, TypeError) as err:
        *_, reason = str(err).strip().splitlines()  # TVM 0.17 puts C++'s stack before it
        raise TargetError(f"target: {target!r} is not a target of this TVM: {reason}") from err
    check_cpu(made)
    return made
