"""`--lengths length=1,16,128`, `--size batch=1` and `--size seq=1..512`: sizes of a model's
symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import InputError, did_you_mean
from ..ir.symbols import Range

# Of one symbol: the only one, or the least and the largest (None: any).
Asked = int | tuple[int | None, int | None]
LARGEST = 2**31 - 1  # that an index of 32 bits reaches
_RANGE = f"1 to {LARGEST}"


@dataclass(frozen=True)
class Lengths:
    """Of the size of this name; without a name, of the only one."""

    symbol: str
    values: tuple[int, ...]


def parse_lengths(text: str) -> Lengths:
    """`"length=1,16"` -> `Lengths("length", (1, 16))`; `"1,16"` has no name."""
    name, equals, numbers = text.rpartition("=")
    values = [_size(number) for number in numbers.split(",")]
    if None in values or (equals and not name):
        raise InputError(f"lengths: expected NAME=1,16,128, sizes of {_RANGE}, not {text!r}")
    found = tuple(n for n in values if n is not None)
    for n in found:
        if found.count(n) > 1:
            raise InputError(f"lengths: {n} is given twice")
    return Lengths(name, found)


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """`["batch=1"]` -> `{"batch": 1}`."""
    found: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        size = _size(number)
        if not name or size is None:
            raise InputError(f"size: expected NAME=1, a size of {_RANGE}, not {text!r}")
        if name in found:
            raise InputError(f"size: {name} has two sizes")
        found[name] = size
    return found


def parse_ranges(texts: Sequence[str]) -> dict[str, Asked]:
    """`["seq=1..512", "batch=8"]` -> `{"seq": (1, 512), "batch": 8}`; of `..512` the least is None,
    of `8..` the largest.
    """
    found: dict[str, Asked] = {}
    for text in texts:
        name, _, told = text.rpartition("=")
        least, dots, most = told.partition("..")
        given = [end for end in (least, most) if end]
        if not name or not given or not all(map(_size, given)):
            text = f"not {text!r}"
            raise InputError(f"size: expected NAME=64 or NAME=1..512, of {_RANGE}, {text}")
        if name in found:
            raise InputError(f"size: {name} is given twice")
        found[name] = (_size(least), _size(most)) if dots else int(least)
    return found


def asked_range(name: str, asked: Asked) -> Range:
    """What was asked of a symbol; of a number it is the only one. Raises InputError."""
    ends = asked if isinstance(asked, Sequence) else (asked, asked)
    if len(ends) != 2 or not all(e is None or _is_size(e) for e in ends):
        text = f"sizes: {name}: expected a size or a pair (least, largest), sizes of {_RANGE}"
        raise InputError(f"{text}, found {asked!r}")
    least, most = ends
    if most is not None and (least or 0) > most:
        raise InputError(f"size: {name}: expected the least size first, found {least}..{most}")
    return Range(least or 0, most)


def check_symbols(sizes: Mapping[str, object], known: Sequence[str], where: str) -> None:
    """Raises InputError for a name that no open size of a model has."""
    for name in sizes:
        if not known:
            raise InputError(f"size: no size of {where} is open, so that none is {name!r}")
        if name not in known:
            near = did_you_mean(name, known)
            text = f"size: no open size {name!r} in {where}; open: {', '.join(known)}{near}"
            raise InputError(text)


def check_within(name: str, asked: Range, own: Range, by: str, where: str) -> None:
    """Raises InputError for a range that a model cannot be right for. `by`: what says so."""
    told = f" ({by})" if by else ""
    if own.most is not None and max(asked.least, asked.most or 0) > own.most:
        raise InputError(
            f"size: {name} of {where} is at most {own.most}{told}, the range given is {asked}"
        )
    if own.least > 0 and asked.least and asked.least < own.least:
        raise InputError(
            f"size: {name} of {where} is at least {own.least}, the range given is {asked}"
        )


def _is_size(size: object) -> bool:
    return type(size) is int and 0 < size <= LARGEST


def _size(text: str) -> int | None:
    is_number = text.isdecimal() and len(text) < 20  # Python refuses to read more than 4300 digits
    return int(text) if is_number and 0 < int(text) <= LARGEST else None
