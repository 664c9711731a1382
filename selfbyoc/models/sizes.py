"""`--lengths length=1,16,128` and `--size batch=1`: sizes of an ONNX model's symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InputError

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


def _size(text: str) -> int | None:
    is_number = text.isdecimal() and len(text) < 20  # Python refuses to read more than 4300 digits
    return int(text) if is_number and 0 < int(text) <= LARGEST else None
