"""Does an access stay in its buffer? TVM's analyzer first; if it cannot tell, all iterations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import lru_cache

from ...tir.lanes import lane, lanes_of
from ...tvm import Analyzer, tvm
from ...tvm.types import PrimExpr
from ...tvm.values import Unknown
from .accesses import DATA, Access, Loop
from .enumerate import is_plain, turns, variables
from .records import ANALYZER, ENUMERATION, OPEN, WRONG, Answer


def inside(access: Access) -> Answer:
    """Whether every element of an access is one of its buffer's."""
    if access.open not in ("", DATA):
        return Answer(OPEN, access.open)
    if _is_proved(_ends(access.index), access):  # of data: whatever it is, as where it is clamped
        return Answer(ANALYZER)
    return Answer(OPEN, DATA) if access.open else _enumerated(access)


def _ends(index: PrimExpr) -> list[PrimExpr]:
    """The lanes of a vector, but for those between two others; none if they cannot be told."""
    count = lanes_of(index)
    if count == 1:
        return [index]
    some = (0, count - 1) if type(index).__name__ == "Ramp" else range(count)
    each = [lane(index, i) for i in some]
    return [] if any(i is None for i in each) else each


def _is_proved(each: Sequence[PrimExpr], access: Access) -> bool:
    """By the analyzer, of the loops' ranges and the conditions around."""
    ana = analyzer(access.loops)
    with ExitStack() as stack:
        for guard in filter(is_plain, access.guards):
            stack.enter_context(ana.constraint_scope(guard))
        return bool(each) and all(_is_within(ana, index, access.elements) for index in each)


def _is_within(ana: Analyzer, index: PrimExpr, elements: int) -> bool:
    bound = ana.const_int_bound(index)
    if bound.min_value >= 0 and bound.max_value < elements:
        return True
    return bool(ana.can_prove(index >= 0) and ana.can_prove(index < elements))


@lru_cache(maxsize=4)
def analyzer(loops: tuple[Loop, ...]) -> Analyzer:
    """One that knows the ranges of loops."""
    ana = Analyzer()
    for loop in loops:
        ana.bind(loop.var, tvm.ir.Range.from_min_extent(loop.first, loop.extent))
    return ana


def _enumerated(access: Access) -> Answer:
    """By all iterations, first of the conditions that name a variable of the index, then of all."""
    own = set(variables(access.index))
    plain = [guard for guard in access.guards if is_plain(guard)]
    near = [guard for guard in plain if own & set(variables(guard))]
    answer = _over(access, near)
    if answer.means == WRONG and len(near) < len(plain):
        answer = _over(access, plain)
    if answer.means == WRONG and len(plain) < len(access.guards):
        return Answer(OPEN, f"a condition of data is around it; without that: {answer.reason}")
    return answer


def _over(access: Access, guards: Sequence[PrimExpr]) -> Answer:
    try:
        for part in turns(access.index, guards, access.loops):
            beyond = (part.index < 0) | (part.index >= access.elements)
            if beyond.any():
                at, lane_of_it = divmod(int(beyond.argmax()), beyond.shape[1])
                turn = [f"{v.name} = {values[at]}" for v, values in part.variables.items()]
                element = part.index[at, lane_of_it]
                where = ", ".join(turn) or "it runs"
                what = f"element {element} of {access.elements} where {where}"
                return Answer(WRONG, what)
    except Unknown as err:
        return Answer(OPEN, str(err))
    return Answer(ENUMERATION)
