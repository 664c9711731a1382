"""Attributes in neutral form: what the forms of both TVMs' ops are read with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..tvm.types import Attr, Attrs

Raw = Mapping[str, Any]
ReadAttrs = Callable[[Raw], dict[str, Any]]
Needs = Mapping[str, Callable[[Any, Raw], bool]]  # of a value, and of all as they are


class Noted(Mapping[str, Any]):
    """Attributes, and the names of those whose values were asked for."""

    def __init__(self, raw: Raw, names: set[str] | None = None) -> None:
        self.raw = raw
        self.names: set[str] = set() if names is None else names

    def __getitem__(self, name: str) -> Attr:
        self.names.add(name)
        return self.raw[name]

    def __contains__(self, name: object) -> bool:
        return name in set(self.raw)

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)


def plain(value: Attr) -> Attr:
    """A TVM attribute value as Python data: arrays as tuples, IntImm as int, strings as str."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "value"):
        return value.value
    if hasattr(value, "__getitem__"):
        return tuple(plain(v) for v in value)
    return str(value)


def _numbers(value: object) -> tuple[int, ...]:
    """One number, or several; of a text, a set or a float they are none."""
    found = plain(value)
    if isinstance(found, int):
        return (found,)
    if not isinstance(found, tuple | list):
        raise TypeError(f"expected numbers, found {value!r}")
    return tuple(found)


def pair(value: object) -> tuple[int, int]:
    """Strides, dilation or a pool's size: one number stands for both axes."""
    found = _numbers(value)
    if len(found) not in (1, 2):
        raise ValueError(f"expected one number or two, found {value!r}")
    return found[0], found[-1]


def quad(value: object) -> tuple[int, int, int, int]:
    """Padding as (top, left, bottom, right), from one, two or four numbers."""
    found = _numbers(value)
    if len(found) not in (1, 2, 4):
        raise ValueError(f"expected one, two or four numbers, found {value!r}")
    top, left, bottom, right = found * (4 // len(found))
    return top, left, bottom, right


def none(_: Raw) -> dict[str, Attr]:
    """An op without attributes."""
    return {}


def is_empty(value: object) -> bool:
    """Whether an attribute says nothing: what TVM calls none of a text, an array, a dtype."""
    return value is None or value in ("", (), "void")


def must(*allowed: Attr) -> Callable[[Attr, Raw], bool]:
    """An attribute that is one of these; truth is 1 or 0 in TVM 0.17."""
    return lambda value, _: value in allowed


def like_layout(value: str, raw: Raw) -> bool:
    """A result's layout that is the input's."""
    return is_empty(value) or value == plain(raw["layout"])


def only(*names: str) -> ReadAttrs:
    """The named attributes as they are."""
    return lambda raw: {name: plain(raw[name]) for name in names}


def like(defaults: Attrs) -> ReadAttrs:
    """The attributes of an op of a user's, true and false where the defaults are: TVM 0.17 keeps
    them as 1 and 0. Those that a call leaves out have the default.
    """

    def read(raw: Raw) -> dict[str, Attr]:
        there = set(raw)
        given = {name: plain(raw[name]) for name in defaults if name in there}
        return {
            name: bool(value) if isinstance(defaults[name], bool) else value
            for name, value in {**defaults, **given}.items()
        }

    return read


def conv2d_attrs(raw: Raw) -> dict[str, tuple[int, ...]]:
    """The eight that a converter needs, and the result's dtype ('' and None: that of the data)."""
    return {
        "strides": pair(raw["strides"]),
        "padding": quad(raw["padding"]),
        "dilation": pair(raw["dilation"]),
        "groups": plain(raw["groups"]),
        "data_layout": plain(raw["data_layout"]),
        "kernel_layout": plain(raw["kernel_layout"]),
        "out_layout": plain(raw["out_layout"]) or plain(raw["data_layout"]),
        "out_dtype": dtype(raw["out_dtype"]),
    }


def pool2d_attrs(raw: Raw) -> dict[str, Attr]:
    """Max and average pooling alike."""
    return {
        "pool_size": pair(raw["pool_size"]),
        "strides": pair(raw["strides"]),
        "padding": quad(raw["padding"]),
        "dilation": pair(raw["dilation"]),
        "ceil_mode": bool(raw["ceil_mode"]),
        "layout": plain(raw["layout"]),
    }


def avg_pool2d_attrs(raw: Raw) -> dict[str, Attr]:
    """As pool2d, and whether the padding counts."""
    return {**pool2d_attrs(raw), "count_include_pad": bool(raw["count_include_pad"])}


def dtype(value: str | None) -> str | None:
    """A dtype's name, or None where it is left open."""
    text = "" if value is None else str(value)
    return text if text not in ("", "void") else None


NORMALIZERS: dict[str, Callable[[Any], Any]] = {
    "strides": pair,
    "dilation": pair,
    "output_padding": pair,
    "pool_size": pair,
    "padding": quad,
}


def in_one_spelling(name: str, value: Any, rank: int) -> Any:
    """An attribute of an op over tensors of `rank` axes in one spelling, to be compared: axes are
    counted from the front, and one alone is a list of one (`-1`, `(1,)` and `[1]` of a matrix).
    """
    if value is not None and name in NORMALIZERS:
        return NORMALIZERS[name](value)
    if name == "axis" and rank and isinstance(value, int | tuple | list):
        return tuple(int(axis) % rank for axis in _numbers(value))
    return tuple(value) if isinstance(value, list) else value
