"""Ops of no elements, by the sizes that are known when a model is built."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import InputError
from ..graph import OpCall
from ..ir.generation import ir
from ..tvm.types import AttrsNode, IRModule

_PLACES = ("argmax", "argmin", "topk")


def check_places(mod: IRModule) -> None:
    """Raises InputError for a place of the largest among none, and a TopK of more than there are:
    of these TVM says -1, and what the memory held.
    """
    for op in ir.read(mod["main"]).ops:
        if op.kind not in _PLACES or not op.sources:
            continue
        attrs, (value, *_) = op.sources[0].attrs, op.inputs
        axes, least = axes_of(attrs, value.ndim), int(getattr(attrs, "k", 1))
        if 0 in [size for axis, size in enumerate(value.shape) if axis not in axes]:
            continue  # nothing is said
        for axis in axes:
            size = value.shape[axis]
            if size is not None and size < least:
                text = f"{op.kind}: axis {axis} of its input, {value.type}, has {size} elements"
                raise InputError(f"{text}; expected {least} or more")


def of_nothing(mod: IRModule) -> str:
    """Which op has no elements to read, first one that makes some of them; "" where none does."""
    found = sorted(ir.read(mod["main"]).ops, key=_makes_none)
    return next((text for op in found for text in _said(op)), "")


def _said(op: OpCall) -> Iterator[str]:
    for value in op.inputs:
        if 0 in value.shape:
            yield f"{op.kind} of {value.type}, which has no elements"


def _makes_none(op: OpCall) -> bool:
    return any(0 in value.shape for value in op.outputs)


def axes_of(attrs: AttrsNode, rank: int) -> list[int]:
    """The axes that an op looks along, by its attributes in TVM."""
    given = getattr(attrs, "axis", None)
    if given is None:
        return list(range(rank))
    axes = [int(axis) % rank for axis in (given if hasattr(given, "__len__") else [given])]
    is_exclusive = bool(getattr(attrs, "exclude", False))
    return [axis for axis in range(rank) if (axis in axes) is not is_exclusive]
