"""Checks of sizes that composites share: what their computes take for granted."""

from __future__ import annotations

from typing import Any

from ...language.composite import require
from ...ops.vocabulary import elementwise_kinds


def check_sizes(match: Any) -> None:
    """What is added to a result of the group, or multiplied with it, is no larger than that."""
    inside = {id(value) for call in match.ops for value in call.outputs}
    kinds = elementwise_kinds()
    for call in match.ops:
        out = call.outputs[0]
        for value in call.inputs if call.kind in kinds else ():
            grows = id(value) in inside and value.shape != out.shape
            require(not grows, f"{call.name} makes {out.type} of {value.type} by broadcasting")
