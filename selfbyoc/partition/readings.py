"""What partitioning read, written with the external function: the hook reads no pattern again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..codegen.attributes import OF_INNER_ROWS, OF_ROWS, READING, WRITTEN
from ..codegen.external import NOT_OWN, External
from ..codegen.symbolic.rows import is_of_rows
from ..codegen.unread_attributes import is_right
from ..errors import FallbackWarning, SelfbyocError
from ..language.match.epilogue import find_whole
from ..language.match.graph_data import graph_data
from ..language.match.match import Match
from ..language.match.miss import Miss
from ..language.match.reading import Reading, cut_out, reading_of
from ..language.match.reread import match_as_read
from ..tvm.types import Attr, Attrs


def as_main_reads(
    match: Match,
    source_of: Callable[[Attrs], External],
    with_constants: Callable[[External], External],
) -> tuple[External, dict[str, Attr]]:
    """The function that was cut out for a match of main, and the attributes that say how it is
    read; `source_of` reads it with such attributes, `with_constants` says which inputs are.
    """
    told = reading_of(match, cut_out(match))
    first: Miss | None = None
    for attrs in ({}, {READING: told.data()}):
        # By itself, a mask that main computes may have the shape of a bias: it is told, then.
        source = source_of(attrs)
        known = with_constants(source)
        found = _on_its_own(known, match, told)
        if isinstance(found, Match):
            return source, _attrs(known, found)
        first = first or found
    reason = f"its function is read otherwise than the model: {first}"
    text = f"composite {match.composite.name}: {reason}; the default schedule takes over"
    warnings.warn(FallbackWarning(text), stacklevel=5)
    return source_of({}), {NOT_OWN: reason}


def _on_its_own(source: External, match: Match, told: Reading) -> Match | Miss:
    """The match on the function's own graph; by the pattern if importers' forms are read otherwise
    there.
    """
    same = match_as_read(match.composite, told, source.graph)
    return same or find_whole(match.composite, source.graph, is_right)


def _attrs(source: External, found: Match) -> dict[str, Attr]:
    attrs: dict[str, Any] = {READING: reading_of(found, source.graph).data()}
    if source.symbols:
        try:
            attrs[OF_ROWS] = is_of_rows(source)
            attrs[OF_INNER_ROWS] = is_of_rows(source, inner=True)
        except SelfbyocError:  # the hook asks, and says what is wrong
            return attrs
    return attrs


def written_attrs(source: External) -> dict[str, Attr]:
    """What the ops are, where all sizes are known."""
    if source.symbols or READING not in source.attrs:
        return {}
    data = graph_data(source.graph)
    return {} if data is None else {WRITTEN: data}
