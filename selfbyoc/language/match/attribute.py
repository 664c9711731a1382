"""What a pattern wants of an attribute, beside what the op has."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import PurePath

from ...ops.attrs import NORMALIZERS
from ...tvm.types import Attr
from ..raised import own_lines


class PredicateError(Exception):
    """What a pattern wants of an attribute cannot be asked: it raised, or is no value of it."""


def equal_number(found: float, wanted: float) -> bool:
    """As constants: an infinity is near itself alone."""
    return found == wanted or abs(found - wanted) <= 1e-5 * abs(wanted) < math.inf


def wanted_text(wanted: Attr) -> str:
    """What an attribute should be; a predicate by its name, or where it stands."""
    if not callable(wanted):
        return repr(wanted)
    name, code = getattr(wanted, "__name__", ""), getattr(wanted, "__code__", None)
    if code is None or name != "<lambda>":
        return name or "a predicate"
    return f"a predicate ({PurePath(code.co_filename).name}, line {code.co_firstlineno})"


def asked(predicate: Callable[[Attr], object], name: str, found: Attr) -> bool:
    """What a pattern's predicate on an attribute says."""
    try:
        return bool(predicate(found))
    except Exception as err:  # whatever it raises is its own error, with its name
        text = f"the predicate on {name} raised {type(err).__name__} for {found!r}: {err}"
        raise PredicateError(f"{text}{own_lines(err)}") from err


def compared(wanted: Attr, name: str, found: Attr) -> tuple[Attr, bool]:
    """What a pattern wants of an attribute, in neutral form, and whether it is that."""
    try:
        neutral = NORMALIZERS[name](wanted) if name in NORMALIZERS else wanted
        return neutral, _same(neutral, found)
    except Exception as err:  # the pattern may hold anything
        text = f"the pattern wants {name}={wanted!r}, which is no value of it"
        raise PredicateError(f"{text}: {type(err).__name__}: {err}") from err


def _same(wanted: Attr, found: Attr) -> bool:
    if isinstance(found, tuple) and isinstance(wanted, int):
        wanted = (wanted,)  # the axis of a sum
    if isinstance(wanted, (tuple, list)):
        return found is not None and tuple(wanted) == tuple(found)
    return bool(wanted == found)
