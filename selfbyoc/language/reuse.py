"""A composite's kernel under another pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import CompositeError

if TYPE_CHECKING:
    from .composite import Composite


def reused(
    of: Composite, name: str, pattern: Callable[..., Any], changes: Mapping[str, Any]
) -> Composite:
    """A compute for single ops serves wherever these ops are; one for the whole computes its own
    pattern, whatever was matched.
    """
    if callable(of.compute):
        raise CompositeError(
            f"composite {name}: the compute of {of.name} is of its whole pattern and computes no "
            "other; kernels of other patterns have those composites whose compute is "
            "{op kind: function}, such as conv2d"
        )
    return replace(
        of, **{"reference": None, "cases": (), **changes, "name": name, "pattern": pattern}
    )
