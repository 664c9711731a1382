"""One node of a dataflow pattern of TVM, without its classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..tvm.types import Attr, Attrs

ANY, CONSTANT, CALL, EITHER, ATTRS, ITEM, TUPLE, DOMINATOR, OTHER = range(9)


@dataclass(frozen=True)
class View:
    """What a node is, and the nodes in it; `name` is that of an op, or of a class of TVM's."""

    what: int
    parts: tuple[Any, ...] = ()
    name: str = ""
    attrs: Attrs = field(default_factory=dict)
    index: int = 0


def plain(value: Attr) -> Attr:
    """An attribute of TVM's as Python has it."""
    if hasattr(value, "value") and type(value).__name__.endswith("Imm"):
        return plain(value.value)
    if isinstance(value, str):
        return str(value)
    return tuple(map(plain, value)) if hasattr(value, "__len__") else value
