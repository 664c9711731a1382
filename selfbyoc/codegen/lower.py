"""One external function, from its OpGraph to the runtime module that the executor links."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._tvm import GENERATION, has_symbol
from .._tvm_config import kernel_config
from ..cache.kernels import current
from ..cache.keys import of_functions, of_inputs
from ..errors import CompositeError, LoweringError, reason
from ..graph import OpGraph, Value
from ..language.known import composite_of, is_builtin
from ..match.absorbed import find_whole
from ..match.match import Match
from ..wiring import wired
from .apply import Scheduled, apply_schedule, level_of
from .c_source import linkable
from .final import finished, machine_code
from .honoured import is_right
from .stack import Packed, Stacked, stack
from .symbolic.kernel import symbolic_functions
from .told import PACKED, SCALARS, told_graph
from .tuned import TUNED, TUNED_AT, Tuned, told_by

if TYPE_CHECKING:
    from ..language.composite import Composite

logger = logging.getLogger(__name__)

# Attributes that partitioning leaves on an external function, as JSON.
TARGET, COMPOSITE = "tefuse.target", "tefuse.composite"
# Why the kernel must not take the composite's own schedule (verification found it wrong).
NOT_OWN = "tefuse.not_own_schedule"
ATTRS = (TARGET, COMPOSITE, SCALARS, PACKED, NOT_OWN, TUNED, TUNED_AT)


@dataclass(frozen=True)
class External:
    """An external function as the hook sees it, without its IR."""

    symbol: str
    composites: tuple[str, ...]
    graph: OpGraph
    attrs: Mapping[str, Any]
    is_checked: bool = True  # by the executor: shapes and dtypes of what the kernel is called with
    symbols: tuple[str, ...] = ()  # names of its symbolic sizes
    sizes: Mapping[str, int] = field(default_factory=dict)  # at which the graph is read
    read_at: Callable[[Mapping[str, int]], OpGraph] | None = field(default=None, compare=False)

    def at(self, sizes: Mapping[str, int]) -> External:
        """The function of these sizes."""
        assert self.read_at is not None, f"{self.symbol} has no symbolic sizes"
        graph = self.read_at(sizes)
        return replace(self, graph=graph, symbols=(), sizes={}, read_at=None)


def external(
    symbol: str, composites: Sequence[str], raw: OpGraph, attrs: Mapping[str, Any]
) -> External:
    """A raw graph and our attributes -> what the hook works on: scalars known, packed arguments
    unpacked.
    """
    return External(symbol, tuple(composites), told_graph(raw, attrs), attrs)


def read_attrs(attrs: Any) -> dict[str, Any]:
    """Our JSON attributes among a function's."""
    names = {str(k) for k in attrs.keys()}  # noqa: SIM118 (no Python dict)
    return {n: json.loads(str(attrs[n])) for n in ATTRS if n in names}


def match_of(external: External) -> Match:
    """The composite's match on the external function's own graph."""
    graph = external.graph
    composite = composite_of(external.composites, external.attrs.get(COMPOSITE))
    if composite is None:  # several composites that another pass merged: stacked as they are
        return Match(_merged(external.composites), {}, graph.ops, graph.outputs)
    found = find_whole(composite, graph, is_right)
    if not isinstance(found, Match):
        raise CompositeError(
            f"composite {composite.name} does not match the function {external.symbol}: {found}"
        )
    return found


def _merged(names: Sequence[str]) -> Composite:
    from ..language.composite import Composite
    from ..language.pattern import op

    short = dict.fromkeys(name.removeprefix("tefuse.") for name in names)
    return Composite("_and_".join(short), lambda x: op.relu(x), why=f"merged of {', '.join(names)}")


def packed_params(external: External) -> dict[int, Packed]:
    """The parameters that the caller passes packed, by position."""
    return {
        int(position): Packed(p["arg"], Value(tuple(p["shape"]), p["dtype"], p["arg"]))
        for position, p in external.attrs.get(PACKED, {}).items()
    }


def schedule_external(external: External, target: Any) -> tuple[Stacked, Scheduled]:
    """External function -> stacked function and its scheduled form."""
    tuned = Tuned.of(external.attrs)
    told = external.attrs.get(NOT_OWN, "")
    with target, told_by(tuned):  # a compute may ask for both (machine.py, choose)
        stacked = stacked_as(external, target, tuned)
        return stacked, apply_schedule(stacked, target, wired.default_schedule, told, tuned)


def stacked_as(external: External, target: Any, tuned: Tuned | None) -> Stacked:
    """The stacked function; for a trace that of the plain ops, where they have a schedule of ours:
    what the composite computes otherwise was written for that schedule. So is what a kernel
    computes, but weights that came packed nobody else can read.
    """
    match = match_of(external)
    may = match.composite.kernel is not None and not external.attrs.get(PACKED)
    plain = may and (NOT_OWN in external.attrs or not is_for(match.composite, target))
    if plain or takes_plain_ops(match.composite, target, tuned):
        bare = replace(match.composite, kernel=None, compute=None, pack={})
        match = replace(match, composite=bare)
    return stack(external.graph, match, packed_params(external))


def is_for(composite: Composite, target: Any) -> bool:
    """Whether the composite's kernel, if it has one, is for such a target: its plan, its packing
    and its compute are.
    """
    return composite.kernel is None or str(target.kind) in composite.kernel.targets


def takes_plain_ops(composite: Composite, target: Any, tuned: Tuned | None) -> bool:
    """Whether neither the composite's compute nor its packing serves."""
    is_trace = tuned is not None and tuned.trace is not None
    return is_trace and composite.schedule_for(str(target.kind)) is not None


def lower(external: External, target: Any) -> Any:
    """External function -> runtime.Module that holds its symbol, compiled now or earlier."""
    cache = current() if str(target.kind) == "llvm" else None
    if cache is None:
        return _compiled(external, _functions(external, target), target)
    inputs = _inputs_key(external, target)
    key = cache.key_of(inputs)
    module = cache.load(key, external.symbol)
    if module is not None:
        return module
    lowered = _functions(external, target)
    config = kernel_config(target, external.is_checked)
    key = of_functions(list(lowered.by_symbol.values()), target, config)
    about = {"composite": lowered.composite, "target": str(target), "generation": GENERATION}
    module = cache.load(key, external.symbol)
    if module is None:
        compiled = _compiled(external, lowered, target)
        module = cache.keep(key, compiled, external.symbol, about)
    cache.remember(inputs, key, about)
    return module


@dataclass(frozen=True)
class _Functions:
    """Scheduled functions by symbol, the kernel's own first, and whose they are."""

    by_symbol: Mapping[str, Any]
    composite: str
    level: str


def _functions(external: External, target: Any) -> _Functions:
    if external.symbols:
        composite = match_of(external).composite
        told, tuned = external.attrs.get(NOT_OWN, ""), Tuned.of(external.attrs)
        level = level_of(composite, target, told, tuned).name
        functions = symbolic_functions(external, target, _inputs_key(external, target))
        return _Functions(functions, composite.name, level)
    stacked, scheduled = schedule_external(external, target)
    func = finished(scheduled.mod["main"], target).with_attr("global_symbol", external.symbol)
    return _Functions({external.symbol: func}, stacked.composite.name, scheduled.level.name)


def _inputs_key(external: External, target: Any) -> str | None:
    """The key of what the function is made from; a user's composite may read anything, so that it
    is scheduled anew and known by the result.
    """
    composite = composite_of(external.composites, external.attrs.get(COMPOSITE))
    if composite is None or not is_builtin(composite):
        return None
    attrs = {name: value for name, value in external.attrs.items() if name != COMPOSITE}
    attrs |= {"is_checked": external.is_checked, "symbols": external.symbols}
    return of_inputs(external.composites, external.graph, attrs, target)


def _compiled(external: External, made: _Functions, target: Any) -> Any:
    logger.debug("%s: composite %s, %s, %s", external.symbol, made.composite, made.level, target)
    try:
        config = kernel_config(target, external.is_checked)
        module = machine_code(made.by_symbol, external.symbol, target, config=config)
    except Exception as err:
        raise LoweringError(
            f"composite {made.composite}: TVM could not lower it with its {made.level}: "
            f"{reason(err)}"
        ) from err
    if not has_symbol(module, external.symbol):
        raise LoweringError(
            f"composite {made.composite}: the module built for it lacks the symbol "
            f"{external.symbol}"
        )
    return linkable(module, external.symbol) if str(target.kind) == "c" else module
