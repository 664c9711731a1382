"""Attributes of matched ops that nobody looks at: not the pattern, the check, the plan, the packing
or the compute. Such a kernel is right only where they are at their defaults.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ..common.interrupt import stopped
from ..errors import ComputeError
from ..graph import OpCall, OpGraph, numbered
from ..language.composite import Refused
from ..language.decisions import undecided
from ..language.match.match import Match, find_whole
from ..ops.attrs import Noted, in_one_spelling
from ..ops.vocabulary import KINDS
from ..tvm import current_target
from .stack import Builder

if TYPE_CHECKING:
    from ..language.composite import Composite

# They follow from the types, which the stacked function is checked against.
_BY_TYPE = frozenset({"out_dtype", "dtype", "shape", "indices_or_sections", "ceil_mode"})
_ALLOWING = frozenset({"may_round_to"})  # who does not do what they allow is right as well

logger = logging.getLogger(__name__)

Place = tuple[int, str]  # which op of a match, and an attribute of it


def unread(match: Match) -> tuple[OpCall, str] | None:
    """The first op with an attribute that nobody looks at and that is not at its default."""
    return _mistyped(match) or _unseen(match)


def _unseen(match: Match) -> tuple[OpCall, str] | None:
    places = {(n, name): call for n, call in enumerate(match.ops) for name in _said(call)}
    kinds = tuple(call.kind for call in match.ops)
    target = current_target()  # a compute may be another one there
    seen = _seen(match.composite, kinds, tuple(match.args), str(target))
    if not places.keys() <= seen:
        read = _read(match)
        if read is None:
            return None
        seen |= read
    return next(((call, place[1]) for place, call in places.items() if place not in seen), None)


def _mistyped(match: Match) -> tuple[OpCall, str] | None:
    """A product of floats that its model wants in another dtype, and the compute does not; in
    integers TVM rounds now the factors, now the sums, so that nobody knows what it means.
    """
    products = [c for c in match.ops if c.kind != "quantize" and "float" in c.inputs[0].dtype]
    wanted = [(c, c.attrs.get("out_dtype")) for c in products]
    unusual = [(c, dtype) for c, dtype in wanted if dtype not in (None, c.inputs[0].dtype)]
    if not unusual:
        return None
    call = next((c for c, dtype in unusual if "float" not in dtype), None)
    if call is None and _fits_types(match):
        return None
    return call or unusual[0][0], "out_dtype"


def _fits_types(match: Match) -> bool:
    try:
        _trial(match, match.ops)
    except ComputeError:
        return False
    except Exception as err:  # as in `_read`
        if stopped(err):
            raise
        logger.debug("composite %s: no trial", match.composite.name, exc_info=True)
    return True


def is_right(match: Match) -> bool:
    """Whether its composite computes what it selected: by its check, and by all attributes."""
    try:
        if match.composite.check is not None:
            match.composite.check(match)
    except Refused:
        return False
    return unread(match) is None


@lru_cache(maxsize=1024)
def _seen(
    composite: Composite, kinds: tuple[str, ...], args: tuple[str, ...], target: str
) -> set[Place]:
    """What is known to be looked at in matches of one form, for one target: a set that `unread`
    fills, so that most matches need no trial.
    """
    return set()


def _said(call: OpCall) -> Iterator[str]:
    """The attributes that are not at their defaults, or have none."""
    defaults = KINDS[call.kind].attrs
    rank = max(v.ndim for v in (*call.inputs, *call.outputs))
    for name, value in call.attrs.items():
        default = defaults.get(name)
        if name == "out_layout":
            default = call.attrs["data_layout"]
        if name in _BY_TYPE | _ALLOWING:
            continue
        if in_one_spelling(name, value, rank) != in_one_spelling(name, default, rank):
            yield name


def _read(match: Match) -> set[Place] | None:
    """What matching, checking and computing the ops look at, by doing it once. None where that
    raises: the build does the same, and reports it as the composite's error.
    """
    noted = [Noted(call.attrs) for call in match.ops]
    ops = tuple(replace(call, attrs=n) for call, n in zip(match.ops, noted, strict=True))
    try:
        _trial(match, ops)
    except Exception as err:  # whatever a user's function raises
        if stopped(err):
            raise
        logger.debug("composite %s: no trial", match.composite.name, exc_info=True)
        return None
    return {(n, name) for n, attrs in enumerate(noted) for name in attrs.names}


def _trial(match: Match, ops: tuple[OpCall, ...]) -> None:
    """Match, check and stack the ops, for what that looks at and what it raises."""
    # Named as in the function that is cut out: a plan asks for `ops.conv2d`, wherever it stands.
    ops = tuple(replace(call, name=name) for call, name in numbered(ops))
    args = tuple(dict.fromkeys(match.args.values()))
    graph = OpGraph(args, ops, match.outputs)
    again = find_whole(match.composite, graph)
    again = again if isinstance(again, Match) else match.with_ops(ops)
    with undecided():
        if match.composite.check is not None:
            match.composite.check(again)
        Builder(graph, again, {})
