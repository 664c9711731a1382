"""`build`: the whole road in one call, on either generation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..codegen.cache.kernels import using
from ..codegen.external import External, read_attrs
from ..codegen.fallback import reason_of
from ..codegen.hook import hook
from ..codegen.progress import begin, is_watched
from ..codegen.records.lookup import with_record
from ..codegen.target import host_target
from ..common.interrupt import interruptible
from ..errors import (
    FallbackWarning,
    InputError,
    LoweringError,
    SelfbyocError,
    one_line,
)  # fmt: skip
from ..language.registry import listed
from ..models.generation import tvm_road
from ..models.sizes import Asked
from ..partition import check_module, check_target, guarded, is_partitioned
from ..partition.extents import sizes_told
from ..partition.generation import ir
from ..partition.guard import Guard
from ..partition.nothing_matched import warn_of_nothing
from ..partition.original_weights import without_originals
from ..partition.report import report
from ..partition.source_names import names_of, with_names
from ..partition.weights import rounded
from ..simplify.few_bits import NAMES, with_few_bits
from ..simplify.halves import with_half_weights
from ..tvm.types import IRModule, NDArray, Target
from .compiled import Compiled
from .empty_tensors import check_places, of_nothing
from .generation import runtime
from .index_bounds import bounds_of
from .library import Library
from .note import versions
from .retries import without_what_is_not_read, without_what_raises
from .signature import signature_of
from .sizes import bounded_by, least_sizes, sizes_of

if TYPE_CHECKING:
    from ..language.composite import Composite

verifiers: list[Callable[..., Any]] = []  # one: analysis/ is above, and api.py adds it
WEIGHTS = ("float32", "float16", *NAMES)  # how those of float32 are held
ACTIVATIONS = ("float32", "int8")


def build(
    mod: IRModule,
    target: Target | None = None,
    params: Mapping[str, NDArray] | None = None,
    composites: Iterable[Composite] | None = None,
    *,
    verify: bool = False,
    verify_timeout: float = 300.0,
    guard: Guard | None = None,
    cache: bool | str | Path = True,
    weights: str = "float32",
    group: int = 32,
    activations: str = "float32",
    sizes: Mapping[str, Asked] | None = None,
) -> Library:
    """Partition (unless that is done), compile and wrap up a model.

    mod             a Relay or Relax module, partitioned or not; it is not changed
    target          a text, a tvm.target.Target, or None: this machine's CPU (`host_target`)
    params          weights by name, bound as constants
    composites      as for partition_for_tefuse; none for a partitioned module
    verify          run every kernel against references first, in a process of its own. A schedule
                    or a composite that raises, crashes, hangs or computes something else is left
                    out with a VerificationWarning: its default schedule serves, or another
                    composite, or TVM (`library.disabled`)
    verify_timeout  seconds that one build or one run may take there
    guard           may leave matches out before: `selfbyoc.MeasuredGuard()` those that do not pay
    cache           kernels compiled before are loaded from disk. False: none are, none are kept; a
                    path: in this folder; True: as the environment's SELFBYOC_CACHE says
    weights         "float16" rounds those of float32: half the bytes in an exported file and, of a
                    module not partitioned yet, those of dense layers and convolutions in memory,
                    too, but where Winograd may transform them. "int8", "int4": those of dense
                    layers are levels, a scale and a zero point for each `group` of a unit's inputs
    group           see weights; a multiple of 8
    activations     "int8": what multiplies such weights becomes levels of 8 bits, too: faster
    sizes           of symbols by name: a number, or the least and the largest (None: any) that
                    inputs may have, `{"batch": 1, "seq": (1, 512)}`; see from_onnx (Relax)

    Raises what partition_for_tefuse raises, and ScheduleError or LoweringError for a composite of
    yours that fails. Where a built-in one fails, the default schedule or TVM serves, with a
    FallbackWarning and a line in `library.report`. InputError for a weight that is too large for
    float16, and for a range that is of no symbol, empty, or beyond the module's own.
    """
    check_module(mod)
    mod = with_sizes(mod, sizes or {})
    mod, params, weights = _with_weights(mod, params, weights, group, activations)
    with interruptible(), using(cache) as use, sizes_told(mod):
        timeout = verify_timeout if verify else None
        library = _built(mod, target, params, composites, guard, timeout, weights)
    return replace(library, cache=use)


def _check_weights(weights: str, activations: str) -> None:
    if weights not in WEIGHTS:
        raise InputError(f"weights: expected {' or '.join(WEIGHTS)}, found {weights!r}")
    known = ACTIVATIONS if weights in NAMES else ACTIVATIONS[:1]
    if activations not in known:
        expected = f"expected {' or '.join(known)} beside weights of {weights}"
        raise InputError(f"activations: {expected}, found {activations!r}")


def _with_weights(
    mod: IRModule,
    params: Mapping[str, NDArray] | None,
    weights: str,
    group: int,
    activations: str,
) -> tuple[IRModule, Mapping[str, NDArray] | None, str]:
    """The module, before it is partitioned, whose dense layers have weights held so; parameters
    that are left, and how the others are held.
    """
    _check_weights(weights, activations)
    if weights in NAMES:
        if is_partitioned(mod):
            raise InputError("weights: this module is partitioned already; give what it was before")
        if type(group) is not int or group < 8 or group % 8:
            raise InputError(f"group: expected a multiple of 8, found {group!r}")
        made = with_few_bits(ir.prepare(mod, params), NAMES[weights], group, activations)
    elif weights == "float16" and not is_partitioned(mod):
        made = with_half_weights(ir.prepare(mod, params))
    else:
        return mod, params, weights
    # On Relay a pass forgets the module's attributes.
    return with_names(made, names_of(mod)), None, "float32" if weights in NAMES else weights


def with_sizes(mod: IRModule, sizes: Mapping[str, Asked], where: str = "the module") -> IRModule:
    """The module, before it is partitioned, with these sizes or ranges for its symbols."""
    if sizes and is_partitioned(mod):
        raise InputError(f"size: {where} is partitioned already; give sizes to what it was before")
    return tvm_road.limited(mod, sizes, where)


def _built(
    mod: IRModule,
    target: Target,
    params: Mapping[str, NDArray] | None,
    composites: Iterable[Composite] | None,
    guard: Guard | None,
    verify_timeout: float | None,
    weights: str,
) -> Library:
    target = host_target() if target is None else check_target(target)
    compiled = partial(_compiled, target=target, weights=weights)
    if is_partitioned(mod):
        late = {"guard": guard, "composites": composites, "params": params or None}
        for name in (name for name, value in late.items() if value is not None):
            text = f"{name}: this module is partitioned already; hand it to partitioning"
            raise InputError(text)
    if verify_timeout is not None:
        composites = listed(composites)
        refused = guarded(mod, params, target, composites, guard)[1] if guard is not None else {}
        found = verifiers[0](mod, params, target, composites, verify_timeout, refused)
        library = compiled(found.mod)
        warn_of_nothing(report(found.mod), found.disabled or refused, stacklevel=3)
        return replace(library, disabled=found.disabled, verification=found.verification)
    if is_partitioned(mod):
        return without_what_is_not_read(mod, target, compiled)
    asked = listed(composites)
    return without_what_raises(
        lambda refused: guarded(mod, params, target, asked, guard, refused), target, compiled
    )


def _compiled(mod: IRModule, target: Target, weights: str) -> Library:
    if weights == "float16":
        mod = rounded(mod)
    if is_watched():
        begin(_kernels(mod, target), target)
    check_places(mod)
    try:
        with sizes_told(mod):
            made = runtime.compile_module(without_originals(mod), target)
    except SelfbyocError:
        raise
    except Exception as err:  # TVM's own passes and schedules raise whatever they like
        why = "; ".join(filter(None, [one_line(err), of_nothing(mod)]))
        raise LoweringError(f"TVM cannot build the model: {why}") from err
    _warn_of_loops(made)
    told = report(mod).with_levels(lambda symbol: reason_of(symbol, target))
    inputs, outputs = signature_of(mod)
    return Library(
        made.native, inputs, dict(made.unscheduled), report=told, target=target, outputs=outputs,
        versions=versions(), weights=weights,
        index_bounds=bounds_of(mod, [name for name, _, _ in inputs]), sizes=sizes_of(mod),
        least_sizes=least_sizes(mod), bounded_by=bounded_by(mod), memory=made.memory,
    )  # fmt: skip


def _warn_of_loops(made: Compiled) -> None:
    for name in made.serial_sums[:1]:
        others = len(made.serial_sums) - 1
        more = f" and {others} more run" if others else " runs"
        why = f"{made.unscheduled[name]} (library.unscheduled)"
        text = f"{name}{more} as serial loops, as TVM has them: {why}"
        warnings.warn(FallbackWarning(text), stacklevel=6)


def _kernels(mod: IRModule, target: Target) -> list[External]:
    """The kernels that a partitioned module has, each once, as the hook will see them."""
    found: dict[str, External] = {}
    for func in ir.external_functions(mod).values():
        symbol = str(func.attrs["global_symbol"])
        if symbol not in found:
            source = hook.source_of(func, symbol, read_attrs(func.attrs))
            found[symbol] = with_record(source, target, packed=True)
    return list(found.values())
