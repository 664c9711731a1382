"""Ops that copy elements, by numbers or to sizes that are expressions of the inputs' sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ....tvm.types import Attrs, Expr
from ...relax.copies import spread, tiled
from ..resampling import is_copying
from .shapes import Reading, extents_of


def _tile(at: Reading, inputs: Sequence[Expr], attributes: Attrs) -> Expr | None:
    """Of numbers alone, TVM's frontend reads it right."""
    times = at.numbers(1)
    if times is None or at.is_constant(1):
        return None
    return tiled(at.builder, at.algebra, inputs[0], extents_of(inputs[0]), times)


def _resize(at: Reading, inputs: Sequence[Expr], attributes: Attrs) -> Expr | None:
    """One that copies the pixels of an image whose sizes are open."""
    extents, scales = extents_of(inputs[0]), at.known[2] if len(at.known) == 3 else None
    if scales is None or not scales.is_constant or all(isinstance(e, int) for e in extents):
        return None
    if scales.elements.size != len(extents) or not is_copying(attributes, scales.elements):
        return None
    times = [int(scale) for scale in scales.elements]
    return spread(at.builder, at.algebra, inputs[0], extents, times)


CONVERTERS = {"Resize": _resize, "Tile": _tile}
