"""Stages by role: what a kernel's compute returned, as tensors and then as blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ..tvm import te
from ..tvm.types import Tensor


class Name(str):
    """The name of a block, where a dataclass of stages may hold other texts."""


def outputs_of(found: object) -> list[Tensor]:
    """The result tensors of what a compute returned: they, or the `result` among its stages."""
    if dataclasses.is_dataclass(found) and hasattr(found, "result"):
        found = found.result
    return list(found) if isinstance(found, (list, tuple)) else [found]


def located(stages: Any, block: Callable[[Any], Any]) -> Any:
    """The same stages with `block(leaf)` in place of every leaf: of the te operation of a tensor,
    or of the name of a block. A tensor that has no block, an argument, becomes None.
    """
    if isinstance(stages, te.Tensor):
        return block(stages.op)
    if isinstance(stages, Name):
        return block(stages)
    if isinstance(stages, Mapping):
        return {key: located(value, block) for key, value in stages.items()}
    if isinstance(stages, (list, tuple)):
        return tuple(located(value, block) for value in stages)
    if dataclasses.is_dataclass(stages) and not isinstance(stages, type):
        names = [f.name for f in dataclasses.fields(stages)]
        found = {name: located(getattr(stages, name), block) for name in names}
        return dataclasses.replace(stages, **found)
    return stages
