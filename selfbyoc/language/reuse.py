"""A composite's kernel under another pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import CompositeError
from .nodes import Program


def reused_fields(
    of: tuple[str, object], name: str, pattern: Program, changes: Mapping[str, object]
) -> dict[str, Any]:
    """The fields that change. `of`: the composite's name and its compute.

    A compute for single ops serves wherever these ops are; one for the whole computes its own
    pattern, whatever was matched.
    """
    known, compute = of
    if callable(compute):
        raise CompositeError(
            f"composite {name}: the compute of {known} is of its whole pattern and computes no "
            "other; kernels of other patterns have those composites whose compute is "
            "{op kind: function}, such as conv2d"
        )
    return {"reference": None, "cases": (), **changes, "name": name, "pattern": pattern}
