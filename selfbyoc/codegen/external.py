"""One external function as the hook sees it: its graph, its attributes, its composite's match."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..errors import ReadingError
from ..graph import OpGraph, Symbol, Value
from ..ir.symbols import Range
from ..language.known import composite_of
from ..language.match.epilogue import find_whole
from ..language.match.match import Match
from ..language.match.reading import Reading
from ..language.match.reread import match_as_read
from ..tvm.types import Attr, Attrs, AttrsNode, Target
from .attributes import (
    OF_INNER_ROWS,
    OF_ROWS,
    PACKED,
    READING,
    SCALARS,
    SEVEN_BITS,
    WRITTEN,
    told_graph,
)
from .stack import Packed
from .tuning_record import TUNED, TUNED_AT, Tuned
from .unread_attributes import is_right

if TYPE_CHECKING:
    from ..language.composite import Composite

# Attributes that partitioning leaves on an external function, as JSON.
TARGET, COMPOSITE = "tefuse.target", "tefuse.composite"
# Why the kernel must not take the composite's own schedule (verification found it wrong).
NOT_OWN = "tefuse.not_own_schedule"
# Symbol -> the least and the largest size that anybody calls the kernel with.
RANGES = "tefuse.ranges"
ATTRS = (
    TARGET, COMPOSITE, SCALARS, SEVEN_BITS, PACKED, READING, WRITTEN, OF_ROWS, OF_INNER_ROWS,
    NOT_OWN, TUNED, TUNED_AT, RANGES,
)  # fmt: skip


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

    def range_of(self, symbol: str) -> Range:
        """The sizes that it is called with."""
        return Range(*self.attrs.get(RANGES, {}).get(symbol, ()))

    def at(self, sizes: Mapping[str, int]) -> External:
        """The function of these sizes."""
        assert self.read_at is not None, f"{self.symbol} has no symbolic sizes"
        graph = self.read_at(sizes)
        return replace(self, graph=graph, symbols=(), sizes={}, read_at=None)


def external(symbol: str, composites: Sequence[str], raw: OpGraph, attrs: Attrs) -> External:
    """A raw graph and our attributes -> what the hook works on: scalars known, packed arguments
    unpacked.
    """
    return External(symbol, tuple(composites), told_graph(raw, attrs), attrs)


def main_last(sizes: Mapping[str, int], graph: OpGraph) -> dict[str, int]:
    """The sizes of symbols with the one last that has families of kernels: one that no result has,
    as what is summed over comes in blocks; of several, or of none, the last.
    """
    extents = (extent for value in graph.outputs for extent in value.shape)
    kept = set(re.findall(r"\w+", " ".join(str(e) for e in extents if isinstance(e, Symbol))))
    names = sorted(sizes, key=lambda name: name not in kept)
    return {name: sizes[name] for name in names}


def read_attrs(attrs: AttrsNode) -> dict[str, Attr]:
    """Our JSON attributes among a function's."""
    names = {str(k) for k in attrs.keys()}  # noqa: SIM118 (no Python dict)
    return {n: json.loads(str(attrs[n])) for n in ATTRS if n in names}


def match_of(external: External) -> Match:
    """The composite's match on the external function's own graph, as partitioning read it; by the
    pattern where it left no reading, or another pass changed the ops. Of one that does not match,
    and shall have the default schedule, all its ops as they are.
    """
    graph = external.graph
    composite = composite_of(external.composites, external.attrs.get(COMPOSITE))
    if composite is None:  # several composites that another pass merged
        return _as_it_is(external)
    read = _as_read(external, composite)
    if read is not None:
        return read
    found = find_whole(composite, graph, is_right)
    if not isinstance(found, Match):
        if external.attrs.get(NOT_OWN) and not external.attrs.get(PACKED):
            return _as_it_is(external)
        raise ReadingError(
            f"composite {composite.name} does not match the function {external.symbol}: {found}"
        )
    return found


def _as_read(external: External, composite: Composite) -> Match | None:
    told = external.attrs.get(READING)
    return told and match_as_read(composite, Reading.of(told), external.graph)


def _as_it_is(external: External) -> Match:
    graph = external.graph
    return Match(_merged(external.composites), {}, graph.ops, graph.outputs)


@lru_cache(maxsize=64)
def _merged(names: tuple[str, ...]) -> Composite:
    from ..language.composite import Composite
    from ..language.pattern import op

    short = dict.fromkeys(name.removeprefix("tefuse.") for name in names)
    name = "_and_".join(short) or "unnamed"
    return Composite(name, lambda x: op.relu(x), why=f"merged of {', '.join(names)}")


def packed_params(external: External) -> dict[int, Packed]:
    """The parameters that the caller passes packed, by position."""
    return {
        int(position): Packed(p["arg"], Value(tuple(p["shape"]), p["dtype"], p["arg"]))
        for position, p in external.attrs.get(PACKED, {}).items()
    }


def is_for(composite: Composite, target: Target) -> bool:
    """Whether the composite's kernel, if it has one, is for such a target: its plan, its packing
    and its compute are.
    """
    return composite.kernel is None or str(target.kind) in composite.kernel.targets


def takes_plain_ops(composite: Composite, target: Target, tuned: Tuned | None) -> bool:
    """Whether neither the composite's compute nor its packing serves."""
    is_trace = tuned is not None and tuned.trace is not None
    return is_trace and composite.schedule_for(str(target.kind)) is not None
