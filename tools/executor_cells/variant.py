"""A way to build that differs from the usual one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variant:
    """What PassContext and TVM's build function are told besides, by which executors."""

    executors: tuple[str, ...]
    context: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
