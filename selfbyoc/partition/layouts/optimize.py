"""`optimize_layouts`: transposes moved through the ops between them, where that moves less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...graph import OpGraph, Value
from ...ir.generation import ir as reader
from ...ir.reader import Written
from ...language.known import registry_of
from ...tvm import module_with_attr, tvm
from ...tvm.types import Expr, IRModule, NDArray
from .. import check_module, decide, is_partitioned
from ..generation import ir as partitioner
from .axes import KERNEL_LAYOUTS, axes_of
from .flow import Flow
from .generation import ir
from .plan import choose_orders
from .record import LAYOUTS, Layouts
from .rewrite import Rewriter

if TYPE_CHECKING:
    from ...language.composite import Composite
    from ...language.match.match import Match


def optimize_layouts(
    mod: tvm.IRModule,
    params: Mapping[str, NDArray] | None = None,
    composites: Iterable[Composite] | None = None,
    *,
    data_layout: str | None = None,
) -> tvm.IRModule:
    """Reorder the axes of ops where that transposes fewer bytes; run it before
    `partition_for_tefuse`.

        transpose(relu(transpose(x) + bias))  ->  relu(x + bias'), with bias' made ahead of time

    mod          a Relay or Relax module with `main`; it is not changed
    params       weights by name, bound as constants: what is constant is transposed ahead of time
    composites   what is going to be partitioned by; ops that these fuse around a product stay
    data_layout  "NCHW" or "NHWC": convolutions in the other one move to it, their weights with them

    Raises InputError. What was gained is in `explain` and in `report`.
    """
    _check(mod, data_layout)
    registry = registry_of(composites)
    prepared = partitioner.prepare(mod, params)
    reason = ir.unsupported(prepared)
    if reason:
        return _told(ir.finished(prepared), Layouts(reason=reason), mod)
    matches, _ = decide(prepared, registry, strict=False)
    for all_stay in (False, True):
        kept = _kept(matches, data_layout, all_stay=all_stay)
        done, told = _rewritten(prepared, kept, data_layout)
        again, _ = decide(partitioner.prepare(done, None), registry, strict=False)
        if _taken(again) >= _taken(matches):
            break
    return _told(done, told, mod)


def _rewritten(
    prepared: IRModule, kept: set[Expr], data_layout: str | None
) -> tuple[IRModule, Layouts]:
    written = reader.read_as_written(prepared["main"])
    flow = _flow(written.graph, kept, data_layout)
    orders = choose_orders(flow)
    rewriter = Rewriter(flow, orders, _constants(written))
    done = ir.finished(ir.rewritten(prepared, written, rewriter))
    (count, size), moved = flow.written(), sum(map(rewriter.is_moved, written.graph.ops))
    made = (value for call in written.graph.ops for value in call.outputs)
    is_open = not all(value.is_static for value in made)
    left = flow.count(orders), size, flow.total(orders).bytes
    return done, Layouts(count, *left, moved, is_open=is_open)


def _check(mod: IRModule, data_layout: str | None) -> None:
    check_module(mod)
    if is_partitioned(mod):
        raise InputError("mod: this module is partitioned already; optimize its layouts before")
    if data_layout not in (None, *KERNEL_LAYOUTS):
        known = " or ".join(KERNEL_LAYOUTS)
        raise InputError(f"data_layout: expected {known}, found {data_layout!r}")


def _kept(matches: Sequence[Match], data_layout: str | None, *, all_stay: bool) -> set[Expr]:
    """The IR nodes of matches around what cannot move: a product with its epilogue and transposes.

    Matches of ops that can all move may go elsewhere as a whole, unless `all_stay`.
    """
    fixed = (m for m in matches if _stays(m, data_layout, all_stay))
    return {source for match in fixed for call in match.ops for source in call.sources}


def _stays(match: Match, data_layout: str | None, all_stay: bool) -> bool:
    axes = [axes_of(call, data_layout) for call in match.ops]
    if any(found is not None and found.forced for found in axes):
        return False  # a convolution whose layout was asked for
    return all_stay or None in axes


def _taken(matches: Sequence[Match]) -> int:
    """How many ops composites take: a layout that loses some does not pay."""
    return sum(call.kind not in ("transpose", "reshape") for m in matches for call in m.ops)


def _flow(graph: OpGraph, kept: set[Expr], data_layout: str | None) -> Flow:
    free = [call for call in graph.ops if not kept.intersection(call.sources)]
    transposes = ((call, ir.transposed(call)) for call in free)
    axes = ((call, axes_of(call, data_layout)) for call in free)
    return Flow(
        graph,
        {call: found for call, found in transposes if found is not None},
        {call: found for call, found in axes if found is not None},
    )


def _constants(written: Written) -> dict[Value, Expr]:
    """A constant -> its IR node."""
    found: dict[Value, Any] = {}
    for node, values in written.values.items():
        for value in values:
            if value.is_constant:
                found.setdefault(value, node)  # inputs come before the tuples of them
    return found


def _told(done: IRModule, told: Layouts, mod: IRModule) -> IRModule:
    """The new module with the attributes of the old one, and what was done."""
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return module_with_attr(done, LAYOUTS, told.to_json())
