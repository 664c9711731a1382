"""The melting report: each fused kernel's loop nest, where each value lies, and what it saves.

An intermediate travels through memory if it lies outside of all loops, between the one that writes
it and the one that reads it, or if one copy of it is larger than CACHE; it does not if its reader,
under the same loop, finds it in the cache or in registers. Separate ops write each intermediate
once, and each of its readers reads it. Padded and packed copies of an op's input are told apart:
separate ops make theirs too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...codegen.apply import Level
from ...codegen.info.op_info import OpInfo, op_info, recorded_of
from ...codegen.target import host_target
from ...errors import InputError, SelfbyocError
from ...graph import OpGraph
from ...ops.cost import item_bytes
from ...partition import check_module, check_target
from ...tvm import param_buffers, tvm
from ...tvm.types import IRModule, PrimFunc, Target
from ..kernels import Kernel, kernels
from ..sizes import at_sizes, op_at, sizes_for
from .allocations import allocations, threads_of
from .flops import by_kind, flops_of_graph
from .formulas import Formula, formula
from .outside import outside
from .peak import Peak, measured_peak, timing
from .placement import placements
from .read_nest import loop_nest
from .records import Failure, Intermediate, KernelReport, Melting

__all__ = ["KernelReport", "Melting", "describe", "melting"]

# Bytes of a core's L2 on CPUs of these years (Zen 1 to 5: 512 KB to 1 MB, Intel 1.25 to 2 MB): a
# tile that is larger is taken to travel.
CACHE = 1 << 20


def melting(
    mod_or_prim_func: IRModule | PrimFunc,
    target: Target | None = None,
    time: bool = False,
    composite: str | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Melting:
    """The report of a partitioned module, or of one scheduled PrimFunc.

    mod_or_prim_func  what partition_for_tefuse returned, or a PrimFunc
    target            None: the host
    time              measure each kernel, and the machine's peak to compare with; of a module
                      all functions outside of the kernels too (Relax)
    composite         the one whose kernels to report, a root op or a symbol; None: all of them
    sizes             of symbolic sizes, by name, such as {"n": 128}; of one that is not among them,
                      an example's. The report says at which sizes its figures are (Relax)

    A kernel of a module that cannot be analysed is among the failures; it breaks nothing. Raises
    InputError for what is neither, for a composite that no kernel is of, for sizes that do not fit;
    a bad PrimFunc of yours raises OpInfoError.
    """
    target = host_target() if target is None else check_target(target)
    if isinstance(mod_or_prim_func, tvm.IRModule):
        return _of_module(mod_or_prim_func, target, time, composite, sizes)
    if not hasattr(mod_or_prim_func, "body") or not hasattr(mod_or_prim_func, "attrs"):
        kind = type(mod_or_prim_func).__name__
        raise InputError(f"expected a partitioned IRModule or a scheduled PrimFunc, found {kind}")
    func, sizes = at_sizes(mod_or_prim_func, sizes)
    peak = measured_peak(target) if time else None
    return Melting((describe(func, target, peak, sizes=sizes),), (), peak)


def _of_module(
    mod: IRModule,
    target: Target,
    time: bool,
    composite: str | None,
    sizes: Mapping[str, int] | None,
) -> Melting:
    check_module(mod)
    every = kernels(mod)
    at = sizes_for(mod, every, sizes)
    examples = tuple(name for name in at if name not in (sizes or {}))
    asked = _asked(_equals(every), composite)
    found = _of_kernels(asked, target, measured_peak(target) if time else None, at, examples)
    if found.peak is None or composite is not None:
        return found
    return replace(found, outside=outside(mod, target, found.peak, at))


def _asked(groups: list[list[Kernel]], name: str | None) -> list[list[Kernel]]:
    """The kernels of one composite, root op or symbol."""
    if name is None:
        return groups
    found = [
        group
        for group in groups
        if any(name in (k.composite.name, k.symbol, *k.roots) for k in group)
    ]
    if not found:
        known = sorted({kernel.composite.name for group in groups for kernel in group})
        raise InputError(f"no kernel {name!r}; known composites: {known}")
    return found


def _of_kernels(
    groups: list[list[Kernel]],
    target: Target,
    peak: Peak | None,
    sizes: Mapping[str, int],
    examples: Sequence[str],
) -> Melting:
    found: list[KernelReport] = []
    failures: list[Failure] = []
    for equal in groups:
        kernel = equal[0]
        roots = tuple(root for k in equal for root in k.roots)
        try:
            made = _of_kernel(kernel.at(sizes), roots, target, peak)
            here = tuple(name for name in examples if name in made.sizes)
            found.append(replace(made, examples=here, formulas=_formulas(kernel, made)))
        except Exception as err:  # an analysis must not break what asked for it
            reason = str(err) if isinstance(err, SelfbyocError) else f"{type(err).__name__}: {err}"
            name = kernel.source.composites[0].removeprefix("tefuse.")
            failures.append(Failure(kernel.symbol, name, roots, reason.splitlines()[0]))
    return Melting(tuple(found), tuple(failures), peak)


def _equals(found: Sequence[Kernel]) -> list[list[Kernel]]:
    """Kernels of the same composite on the same ops and types: Relay makes one for each match."""
    groups: dict[str, list[Kernel]] = {}
    for kernel in found:
        graph = kernel.source.graph
        ops = [(c.kind, str(sorted(c.attrs.items())), str(c)) for c in graph.ops]
        attrs = {k: v for k, v in kernel.source.attrs.items() if k != "tefuse.target"}
        key = repr((kernel.source.composites, ops, [v.type for v in graph.inputs], attrs))
        groups.setdefault(key, []).append(kernel)
    return list(groups.values())


def _of_kernel(
    kernel: Kernel, roots: tuple[str, ...], target: Target, peak: Peak | None
) -> KernelReport:
    stacked, scheduled = kernel.schedule(target)
    return describe(
        scheduled.mod["main"], target, peak, symbol=kernel.symbol, level=scheduled.level,
        composite=stacked.composite.name, why=stacked.composite.why, roots=roots,
        values=_intermediates(kernel.source.graph), sizes=kernel.sizes,
    )  # fmt: skip


def _intermediates(graph: OpGraph) -> list[Intermediate]:
    return [
        Intermediate(call.name, _bytes(value.shape, value.dtype), len(graph.users(value)))
        for call in graph.ops
        for value in call.outputs
        if call.sources and graph.users(value) and not graph.is_output(value)
    ]


def _formulas(kernel: Kernel, made: KernelReport) -> dict[str, Formula]:
    """What the ops of a kernel ask for at every size, where what is reported agrees."""
    every: dict[str, Callable[[OpGraph], int]] = {
        "bytes_before": lambda graph: sum(v.bytes for v in _intermediates(graph)),
        "traffic_before": lambda graph: sum(v.traffic for v in _intermediates(graph)),
        "flops": flops_of_graph,
    }

    def of(count: Callable[[OpGraph], int]) -> Formula | None:
        return formula(lambda sizes: count(kernel.source.at(sizes).graph), kernel.source.symbols)

    found = {name: of(count) for name, count in every.items()}
    return {n: f for n, f in found.items() if f and f.at(made.sizes) == getattr(made, n)}


def describe(
    func: PrimFunc,
    target: Target,
    peak: Peak | None = None,
    *,
    symbol: str = "",
    composite: str = "",
    why: str = "",
    roots: tuple[str, ...] = (),
    level: Level = Level("scheduled", "as it was given"),  # noqa: B008 (frozen)
    values: Sequence[Intermediate] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> KernelReport:
    """One scheduled PrimFunc; without `values` its ops are taken for a chain. It was made at these
    `sizes` of symbols.
    """
    ops = tuple(op_at(op, sizes or {}) for op in _ops(func))
    nest, buffers = loop_nest(func), allocations(func)
    composite = composite or ", ".join(dict.fromkeys(op.composite for op in ops if op.composite))
    chain = [Intermediate(op.name, _bytes(*op.outputs[0]), 1) for op in ops[:-1]]
    arguments = sum(_bytes([int(e) for e in b.shape], str(b.dtype)) for b in param_buffers(func))
    return KernelReport(
        symbol or str((func.attrs or {}).get("global_symbol", "main")),
        composite,
        why,
        max(1, len(roots)),
        roots,
        level,
        ops,
        nest,
        placements(nest, buffers, CACHE),
        buffers,
        tuple(chain if values is None else values),
        arguments,
        threads_of(target),
        timing(func, target, sum(a.flops for a in by_kind(ops)), peak) if peak else None,
        sizes or {},
    )


def _ops(func: PrimFunc) -> tuple[OpInfo, ...]:
    """The ops with their blocks of today, in the layouts that they had when they were stacked: an
    op's arithmetic does not depend on its layout.
    """
    recorded = recorded_of(func)
    now = {op.name: op for op in op_info(func)}
    return tuple(
        replace(op, blocks=now[op.name].blocks, within=now[op.name].within)
        for op in (recorded.ops if recorded else ())
    )


def _bytes(shape: Sequence[int], dtype: str) -> int:
    return math.prod(shape) * item_bytes(dtype)
