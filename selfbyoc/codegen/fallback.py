"""When a built-in composite raises in a build: the default schedule takes over, with a warning.

A user's own composite that raises is an error: the user wants to know. Of a built-in one the user
wants a model that runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ..common.interrupt import stopped
from ..errors import FallbackWarning, ReadingError, SymbolicError, one_line
from ..language.known import composite_of, is_builtin
from ..tvm.types import Target
from .external import COMPOSITE, NOT_OWN, External
from .target import short_text
from .tuning_record import TUNED

if TYPE_CHECKING:
    from ..language.composite import Composite

Made = TypeVar("Made")

_MOST = 4096
Reasons = dict[tuple[str, str], str]  # symbol and target of a kernel -> what raised
_fell: Reasons = {}  # the default schedule serves
_ended: Reasons = {}  # nothing does


def or_default(make: Callable[[External, Target], Made], source: External, target: Target) -> Made:
    """What `make` makes of an external function; where a built-in composite raises, what it makes
    of it with the default schedule.

    The ops are computed one by one then, unless weights came packed: only the composite's own
    compute can read those.
    """
    for reasons in (_fell, _ended):
        reasons.pop((source.symbol, str(target)), None)
    try:
        return make(source, target)
    except Exception as err:  # whatever a part of ours raises
        composite = _replaceable(source, err)
        reason = f"for {_types(source)} on {short_text(target)}: {one_line(err)}"
        if composite is None and isinstance(err, SymbolicError):  # it is right for its own sizes
            _note(_ended, source.symbol, target, reason)
        if composite is None or NOT_OWN in source.attrs or stopped(err):
            raise
        attrs = {name: value for name, value in source.attrs.items() if name != TUNED}
        plain = replace(source, attrs={**attrs, NOT_OWN: reason})
        try:
            made = make(plain, target)
        except Exception:  # as above
            _note(_ended, source.symbol, target, reason)
            raise err  # noqa: B904 (the second error follows from the first)
    _note(_fell, source.symbol, target, reason)
    text = f"composite {composite.name} {reason}; the default schedule takes over"
    warnings.warn(FallbackWarning(text), stacklevel=2)
    return made


@contextmanager
def noting_what_ends(symbol: str, target: Target) -> Iterator[None]:
    """Around the reading of a function: whoever builds asks `ended`."""
    _ended.pop((symbol, str(target)), None)
    try:
        yield
    except ReadingError as err:
        _note(_ended, symbol, target, one_line(err))
        raise


def _replaceable(source: External, err: Exception) -> Composite | None:
    """The composite, if the default schedule may take over from it: a user's own has said nothing
    wrong where its ops were changed under it.
    """
    if isinstance(err, ReadingError):
        return composite_of(source.composites, source.attrs.get(COMPOSITE))
    return builtin_of(source)


def builtin_of(source: External) -> Composite | None:
    """The composite of an external function, if it is this package's own."""
    composite = composite_of(source.composites, source.attrs.get(COMPOSITE))
    return composite if composite is not None and is_builtin(composite) else None


def reason_of(symbol: str, target: Target) -> str:
    """Why a kernel that this process built took the default schedule; empty: it did not."""
    return _fell.get((symbol, str(target)), "")


def ended(symbol: str, target: Target) -> str:
    """What raised in a kernel for which nothing else serves; empty: nothing did."""
    return _ended.get((symbol, str(target)), "")


def _types(source: External) -> str:
    return ", ".join(value.type for value in source.graph.inputs)


def _note(reasons: Reasons, symbol: str, target: Target, reason: str) -> None:
    reasons[symbol, str(target)] = reason
    for oldest in list(reasons)[:-_MOST]:
        reasons.pop(oldest, None)
