"""A prepared module with its ops in the orders of axes that move least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...graph import OpGraph, Value
from ...ir.generation import ir as reader
from ...ir.reader import Written
from ...tvm.types import Expr, IRModule
from .axes import axes_of
from .flow import Flow
from .generation import ir
from .plan import choose_orders
from .record import Layouts
from .rewrite import Rewriter

if TYPE_CHECKING:
    from ...language.match.match import Match


def reordered(
    prepared: IRModule,
    matches: Sequence[Match],
    matched: Callable[[IRModule], Sequence[Match]],
    data_layout: str | None,
) -> tuple[IRModule, Layouts]:
    """The module, and what was gained. `matched` says what composites take of a module: if that is
    less than they take of this one, all of what they take stays.
    """
    reason = ir.unsupported(prepared)
    if reason:
        return ir.finished(prepared), Layouts(reason=reason)
    for all_stay in (False, True):
        kept = _kept(matches, data_layout, all_stay=all_stay)
        done, told = _rewritten(prepared, kept, data_layout)
        if _taken(matched(done)) >= _taken(matches):
            break
    return done, told


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
