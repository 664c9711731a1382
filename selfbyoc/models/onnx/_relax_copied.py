"""Ops that copy elements, by numbers or to sizes that are expressions of the inputs' sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._relax_copies import spread, tiled
from ._relax_shapes import Reading, extents_of


def _tile(at: Reading, inputs: Sequence[Any], attributes: Any) -> Any:
    """Of numbers alone, TVM's frontend reads it right."""
    times = at.numbers(1)
    if times is None or at.is_constant(1):
        return None
    return tiled(at.builder, at.algebra, inputs[0], extents_of(inputs[0]), times)


def _resize(at: Reading, inputs: Sequence[Any], attributes: Any) -> Any:
    """One that copies pixels (resampling.py), of an image whose sizes are open."""
    extents, scales = extents_of(inputs[0]), at.numbers(2) if len(inputs) > 2 else None
    if not scales or all(isinstance(e, int) for e in extents):
        return None
    return spread(at.builder, at.algebra, inputs[0], extents, [int(scale) for scale in scales])


CONVERTERS = {"Resize": _resize, "Tile": _tile}
