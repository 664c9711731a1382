"""JSON as frozen dataclasses, every field of its declared type: a file is data until it is checked.

read(Report, text)    # or ValueError: "rows[3].name: found 7; expected a text"
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_LARGEST = 1 << 63  # of whole numbers: a larger one is no size, and may not become a float


def loads(text: str) -> Any:
    """JSON of any depth that Python can read, or ValueError."""
    try:
        return json.loads(text)
    except RecursionError as err:
        raise ValueError("it is nested too deeply") from err


def read(kind: type[T], text: str) -> T:
    """A text as this dataclass. Raises ValueError that names the field."""
    return checked(kind, loads(text), "")


def checked(kind: Any, value: object, where: str) -> Any:
    """JSON's value as a type: dataclasses, tuples, dicts by text, numbers, texts; `None` is a NaN
    where a float is expected. Raises ValueError.
    """
    origin = get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _object(kind, value, where)
    if origin is tuple:
        return _tuple(get_args(kind), value, where)
    if origin in (dict, Mapping):
        inner = get_args(kind)[1]
        found = _is(isinstance(value, dict), value, where, "an object")
        return {name: checked(inner, v, _at(where, name)) for name, v in found.items()}
    if origin in (Union, types.UnionType):
        return _either(get_args(kind), value, where)
    return value if kind is Any else _SCALARS[kind](value, where)


def _object(kind: Any, value: object, where: str) -> Any:
    found = _is(isinstance(value, dict), value, where, "an object")
    hints, fields = _hints(kind), {f.name: f for f in dataclasses.fields(kind) if f.init}
    for name in found:
        if name not in fields:
            raise ValueError(f"{_at(where, name)}: expected one of {', '.join(fields)}")
    given = {name: checked(hints[name], v, _at(where, name)) for name, v in found.items()}
    for name, field in fields.items():
        needed = field.default is field.default_factory is dataclasses.MISSING
        if needed and name not in given:
            raise ValueError(f"{_at(where, name)} is missing; expected {_said(hints[name])}")
    return kind(**given)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _tuple(kinds: tuple[Any, ...], value: object, where: str) -> tuple[Any, ...]:
    found = _is(isinstance(value, list), value, where, "a list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(found)
    if len(found) != len(kinds):
        raise ValueError(f"{where}: found {len(found)} values; expected {len(kinds)}")
    pairs = zip(kinds, found, strict=True)
    return tuple(checked(kind, v, f"{where}[{n}]") for n, (kind, v) in enumerate(pairs))


def _either(kinds: tuple[Any, ...], value: object, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    problems = []
    for kind in kinds:
        try:
            return checked(kind, value, where)
        except ValueError as err:
            problems.append(str(err))
    raise ValueError(problems[0])


def _text(value: object, where: str) -> str:
    return _is(isinstance(value, str), value, where, "a text")


def _truth(value: object, where: str) -> bool:
    return _is(isinstance(value, bool), value, where, "true or false")


def _whole(value: Any, where: str) -> int:
    is_whole = type(value) is int and -_LARGEST < value < _LARGEST
    return _is(is_whole, value, where, "a whole number of 64 bits")


def _number(value: Any, where: str) -> float:
    if value is None:
        return math.nan
    is_number = type(value) is float or (type(value) is int and abs(value) < _LARGEST)
    return _is(is_number, value, where, "a number")


def _nothing(value: object, where: str) -> None:
    _is(value is None, value, where, "null")


_SCALARS: dict[Any, Callable[[Any, str], Any]] = {
    str: _text, bool: _truth, int: _whole, float: _number, type(None): _nothing,
}  # fmt: skip


def _is(right: bool, value: object, where: str, wanted: str) -> Any:
    if right:
        return value
    large = type(value) is int and abs(value) >= _LARGEST  # Python refuses to spell the largest
    found = "a larger number" if large else f"{value!r:.60}"
    raise ValueError(f"{where or 'the file'}: found {found}; expected {wanted}")


def _said(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _at(where: str, name: str) -> str:
    return f"{where}.{name[:60]}" if where else name[:60]


def nullable(value: object) -> object:
    """Data as JSON can have it: null for a NaN, as `checked` reads it."""
    if isinstance(value, dict):
        return {key: nullable(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [nullable(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value
