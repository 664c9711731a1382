"""A scheduled function -> machine code: what TensorIR has no step for, before and after TVM lowers
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..machine import Machine, machine
from ..machine.features import features_of
from ..machine.gpu import is_gpu
from ..tvm import tvm
from ..tvm.alignment import any_alignment, lowered_for_any_alignment
from ..tvm.build import build_module
from ..tvm.c import for_c
from ..tvm.columns import with_columns_at_once
from ..tvm.config import kernel_config
from ..tvm.divisions import without_traps
from ..tvm.gpu import with_exact_numbers
from ..tvm.nans import with_nans
from ..tvm.rewrite import each_var_once, with_broadcasts
from ..tvm.selects import without_decided, without_truncation
from ..tvm.starts import with_true_starts
from ..tvm.types import Module, PrimFunc, Target
from .aligned_stack import with_aligned_stack
from .allocations import bounded, with_constant_allocations
from .as_written import target_as_written
from .barriers import with_barriers
from .bfloat16 import with_text, with_whole_rows
from .concatenates import without_concatenates
from .copied_rows import with_copied_rows
from .cut_loops import with_cut_loops
from .dot_products import options_for_sums, with_dot_products
from .edge_vectors import with_ends
from .gathers import with_gathers
from .interleaves import with_interleaves
from .level_limits import with_levels
from .nearest import with_nearest
from .overlaps import with_overlaps
from .prefetch import with_prefetch
from .prefetch_early import with_early
from .quotients import with_quotients
from .recurrences import with_carried
from .rows_of_bytes import with_rows_of_bytes
from .stack_tiles import with_tiles_on_stack
from .stealing import with_stealing
from .strided_vectors import with_transposes
from .sums_in_halves import with_sums_in_halves
from .transposed_tiles import with_copies
from .whole_tiles import with_whole_tiles
from .whole_vectors import with_whole_vectors


def finished(func: PrimFunc, target: Target) -> PrimFunc:
    """A scheduled PrimFunc with what TensorIR has no step for."""
    # Schedules copy what they inline into two readers, with its variables: 0.17 lowers no such.
    func = without_traps(without_truncation(func))
    func = each_var_once(with_carried(without_concatenates(func)))
    if is_gpu(target):  # threads reduce together by what TVM knows from its start
        return any_alignment(with_exact_numbers(with_barriers(func), str(target.kind)))
    func = with_cut_loops(func)
    func = with_dot_products(bounded(with_nans(with_true_starts(func))), target)
    func = with_sums_in_halves(func, target)
    if str(target.kind) == "c":
        return for_c(any_alignment(func))
    if str(target.kind) == "llvm":
        if "avx512vbmi" in features_of(target):
            func = with_columns_at_once(func)
        func = with_quotients(with_levels(with_nearest(func, target)), target)
        func = with_early(with_prefetch(func))
        func = with_whole_vectors(func)
    return any_alignment(func)


def at_last(func: PrimFunc) -> PrimFunc:
    """What is done to a lowered PrimFunc of vectors, just before it becomes machine code."""
    func = with_whole_rows(without_decided(func))
    func = with_whole_tiles(with_constant_allocations(func))
    func = with_rows_of_bytes(with_broadcasts(with_ends(func)))
    func = with_interleaves(with_copies(with_gathers(func)))
    func = with_transposes(with_copied_rows(func))
    func = with_text(with_tiles_on_stack(func))
    return lowered_for_any_alignment(each_var_once(func))


def at_last_beside(func: PrimFunc) -> PrimFunc:
    """The same of a PrimFunc that TVM builds with the rest of a model: what its schedule asks for,
    so that one without a schedule stays as it is.
    """
    return each_var_once(with_copies(func))


def _for_cores(cpu: Machine) -> Callable[[PrimFunc], PrimFunc]:
    lanes = cpu.lanes("float32")
    return lambda func: with_stealing(with_aligned_stack(at_last(func), lanes), cpu.cores)


def machine_code(
    func: PrimFunc | Mapping[str, PrimFunc],
    symbol: str,
    target: Target,
    last: Callable[[PrimFunc], PrimFunc] = at_last,
    config: Mapping[str, bool] | None = None,
) -> Module:
    """The runtime module of a finished function, or of several by symbol, whatever TVM raises.
    `last` and `config` (instead of the usual ones) differ where somebody looks at what is lowered
    (analysis/bounds).
    """
    passes = kernel_config(target) if config is None else config
    with tvm.transform.PassContext(opt_level=3, config=passes):
        changed = last if str(target.kind) == "llvm" else None
        functions = dict(func) if isinstance(func, Mapping) else {symbol: func}
        if changed is at_last:  # whoever looks at it wants each element written once
            functions = {name: with_overlaps(each, target) for name, each in functions.items()}
            changed = _for_cores(machine(target))
        options = options_for_sums(functions.values())
        asked = target_as_written(functions.values(), target)
        return build_module(tvm.IRModule(functions), asked, changed, options)
