"""What partitioning read, written with the external function: the hook reads no pattern again."""

from __future__ import annotations

import warnings
from typing import Any

from ..codegen.external import NOT_OWN, External
from ..codegen.honoured import is_right
from ..codegen.symbolic.rows import is_of_rows
from ..codegen.told import OF_INNER_ROWS, OF_ROWS, READING, WRITTEN
from ..errors import FallbackWarning, SelfbyocError
from ..match.absorbed import find_whole
from ..match.match import Match
from ..match.miss import Miss
from ..match.paired import match_as_read
from ..match.reading import cut_out, reading_of
from ..match.written import graph_data


def reading_attrs(source: External, match: Match) -> dict[str, Any]:
    """The attributes for a match of main, of the function that was cut out for it."""
    found = _on_its_own(source, match)
    if isinstance(found, Miss):
        reason = f"its function is read otherwise than the model: {found}"
        text = f"composite {match.composite.name}: {reason}; the default schedule takes over"
        warnings.warn(FallbackWarning(text), stacklevel=5)
        return {NOT_OWN: reason}
    attrs: dict[str, Any] = {READING: reading_of(found, source.graph).data()}
    if source.symbols:
        try:
            attrs[OF_ROWS] = is_of_rows(source)
            attrs[OF_INNER_ROWS] = is_of_rows(source, inner=True)
        except SelfbyocError:  # the hook asks, and says what is wrong
            return attrs
    return attrs


def written_attrs(source: External) -> dict[str, Any]:
    """What the ops are, where all sizes are known."""
    if source.symbols or READING not in source.attrs:
        return {}
    data = graph_data(source.graph)
    return {} if data is None else {WRITTEN: data}


def _on_its_own(source: External, match: Match) -> Match | Miss:
    """The match on the function's own graph; by the pattern if importers' forms are read otherwise
    there.
    """
    reading = reading_of(match, cut_out(match))
    same = match_as_read(match.composite, reading, source.graph)
    return same or find_whole(match.composite, source.graph, is_right)
