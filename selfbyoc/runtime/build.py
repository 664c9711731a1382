"""`build`: the whole road in one call, on either generation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..codegen.cache.kernels import using
from ..codegen.external import External, read_attrs
from ..codegen.fallback import noting_what_ends, reason_of
from ..codegen.hook import hook
from ..codegen.progress import begin, is_watched
from ..codegen.records.lookup import with_record
from ..codegen.target import host_target
from ..common.interrupt import interruptible
from ..common.upper import upper
from ..errors import (
    FallbackWarning,
    InputError,
    LoweringError,
    SelfbyocError,
    one_line,
)  # fmt: skip
from ..language.known import Composites, listed
from ..machine.host import check_compiles
from ..models.generation import tvm_road
from ..models.sizes import Asked
from ..partition import check_module, check_target, guarded, is_partitioned
from ..partition.extents import sizes_told
from ..partition.generation import ir
from ..partition.guard import Guard
from ..partition.nothing_matched import warn_of_nothing
from ..partition.original_weights import without_originals
from ..partition.packings import packings_of
from ..partition.report import report
from ..partition.weights import rounded
from ..tvm.types import IRModule, NDArray, Target
from .compiled import Compiled
from .empty_tensors import check_places, of_nothing
from .exporting import versions
from .generation import runtime
from .index_bounds import bounds_of
from .interface import bounded_by, least_sizes, signature_of, sizes_of
from .library import Library
from .precision import Precision
from .retries import without_what_is_not_read, without_what_raises


def build(
    mod: IRModule,
    target: Target | None = None,
    params: Mapping[str, NDArray] | None = None,
    composites: Composites = None,
    *,
    verify: bool = False,
    verify_timeout: float = 300.0,
    guard: Guard | None = None,
    cache: bool | str | Path = True,
    weights: str = "float32",
    group: int = 32,
    symmetric: bool = False,
    activations: str = "float32",
    requantize: str = "stepwise",
    sizes: Mapping[str, Asked] | None = None,
) -> Library:
    """Partition (unless that is done), compile and wrap up a model.

    mod             a Relay or Relax module, partitioned or not; not changed
    target          a text, a tvm.target.Target, or None: this machine's CPU (`host_target`)
    params          weights by name, bound as constants
    composites      as for partition_for_tefuse; none for a partitioned module
    verify          run every kernel against references first. One that raises, crashes, hangs or is
                    wrong is left out, with a VerificationWarning (`library.disabled`)
    verify_timeout  seconds that one build or one run may take there
    guard           may leave matches out: `selfbyoc.MeasuredGuard()` those that do not pay
    cache           keep kernels on disk. False: no; a path: there; True: as SELFBYOC_CACHE says
    weights         "float16" rounds those of float32 in a file and, of a module not partitioned
                    yet, of dense layers, embeddings and convolutions in memory, but where Winograd
                    may transform them; "bfloat16" what multiplies those, too (Relax). "int8",
                    "int4": levels in dense layers and embeddings, in each `group` a scale
    group           inputs of a unit, a multiple of 8
    symmetric       the zero point of "int8" and "int4" is the middle level: fewer bytes, coarser
    activations     "int8": what multiplies such weights becomes levels of 8 bits: faster
    requantize      "combined": sums of levels become levels by one factor, as in ONNX Runtime
    sizes           of symbols by name: a number, or the least and the largest (None: any) that
                    inputs may have, `{"batch": 1, "seq": (1, 512)}`; see from_onnx (Relax)

    Raises what partition_for_tefuse raises, ScheduleError or LoweringError for a composite of yours
    that fails (where a built-in one does, the default schedule or TVM serves, with a
    FallbackWarning), and InputError for a weight too large for float16 or a wrong range.
    """
    check_module(mod)
    precision = Precision(weights, group, activations, requantize, symmetric)
    mod, params = precision.of(with_sizes(mod, sizes or {}), params)
    with interruptible(), using(cache) as use, sizes_told(mod):
        timeout = verify_timeout if verify else None
        library = _built(mod, target, params, composites, guard, timeout, precision.exported)
    return replace(library, cache=use)


def with_sizes(mod: IRModule, sizes: Mapping[str, Asked], where: str = "the module") -> IRModule:
    """The module, before it is partitioned, with these sizes or ranges for its symbols."""
    if sizes and is_partitioned(mod):
        raise InputError(f"size: {where} is partitioned already; give sizes to what it was before")
    return tvm_road.limited(mod, sizes, where)


def _built(
    mod: IRModule,
    target: Target,
    params: Mapping[str, NDArray] | None,
    composites: Composites,
    guard: Guard | None,
    verify_timeout: float | None,
    weights: str,
) -> Library:
    target = host_target() if target is None else check_target(target)
    check_compiles(target)
    compiled = partial(_compiled, target=target, weights=weights)
    if is_partitioned(mod):
        late = {"guard": guard, "composites": composites, "params": params or None}
        for name in (name for name, value in late.items() if value is not None):
            text = f"{name}: this module is partitioned already; hand it to partitioning"
            raise InputError(text)
    if verify_timeout is not None:
        composites = listed(composites)
        refused = guarded(mod, params, target, composites, guard)[1] if guard is not None else {}
        verified = upper("analysis.verify.build:verified")
        found = verified(mod, params, target, composites, verify_timeout, refused)
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
    sources = partial(_kernels, mod, target)
    if is_watched():
        begin(sources(), target)
    check_places(mod)
    inputs, outputs = signature_of(mod)
    is_static = all(None not in shape for _, shape, _ in (*inputs, *outputs))
    try:
        with sizes_told(mod), hook.kernels_ahead(sources, target, is_static):
            made = runtime.compile_module(without_originals(mod), target)
    except SelfbyocError:
        raise
    except Exception as err:  # TVM's own passes and schedules raise whatever they like
        why = "; ".join(filter(None, [one_line(err), of_nothing(mod)]))
        raise LoweringError(f"TVM cannot build the model: {why}") from err
    _warn_of_loops(made)
    told = report(mod).with_levels(lambda symbol: reason_of(symbol, target))
    bounds, places = bounds_of(mod, [name for name, _, _ in inputs])
    return Library(
        made.native, inputs, dict(made.unscheduled), report=told, target=target, outputs=outputs,
        versions=versions(), weights=weights,
        index_bounds=bounds, index_places=places, sizes=sizes_of(mod),
        least_sizes=least_sizes(mod), bounded_by=bounded_by(mod), memory=made.memory,
        _packings=packings_of(mod, target), _lowered=made.lowered,
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
            with noting_what_ends(symbol, target):
                source = hook.source_of(func, symbol, read_attrs(func.attrs))
            found[symbol] = with_record(source, target, packed=True)
    return list(found.values())
