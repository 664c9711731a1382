"""In which layouts an op can be written: as its tensors are, or else after some are changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..info.layout_map import LayoutMap
from ..info.layout_rules import Before, moved
from ..info.op_record import OpInfo
from ..info.unknown import UNKNOWN

Layouts = Sequence[LayoutMap]


@dataclass(frozen=True)
class Form:
    """An op's attributes where its tensors are laid out like this."""

    attrs: Mapping[str, Any]
    inputs: tuple[LayoutMap, ...]
    outputs: tuple[LayoutMap, ...]


def form_in(info: OpInfo, ins: Layouts, outs: Layouts) -> Form | None:
    """The op in these layouts, or None: it has no form in them."""
    attrs = info.attrs
    if not all(layout.is_identity for layout in (*ins, *outs)):
        change = moved(info.kind, _before(info), ins, outs)
        values = [*change.attrs.values(), *change.inputs, *change.outputs]
        if any(value is UNKNOWN for value in values):
            return None
        attrs = {**attrs, **change.attrs}
    return Form(attrs, tuple(ins), tuple(outs))


def missing(info: OpInfo, ins: Layouts, outs: Layouts) -> str:
    """What of an op is not known in these layouts."""
    change = moved(info.kind, _before(info), ins, outs)
    sides = {"input": change.inputs, "output": change.outputs}
    tensors = [
        f"{side} {i}" for side, layouts in sides.items() for i, v in enumerate(layouts)
        if v is UNKNOWN
    ]  # fmt: skip
    return next((n for n, v in change.attrs.items() if v is UNKNOWN), *tensors[:1] or [""])


def forms(info: OpInfo, ins: Layouts, outs: Layouts) -> Iterator[Form]:
    """The op in other layouts, those first that need the fewest changes; its own at last."""
    whole = [LayoutMap.identity(len(t.shape)) for t in info.inputs]
    results = [LayoutMap.identity(len(t.shape)) for t in info.outputs]
    alike = [
        (_where(info.inputs, layout, whole), _where(info.outputs, layout, results))
        for layout in dict.fromkeys([*outs, *ins])
        if not layout.is_identity
    ]
    tries = [
        *((ins, side) for _, side in alike),
        (ins, results),
        *alike,
        (whole, outs),
        (whole, results),
    ]
    for inputs, outputs in tries:
        found = form_in(info, inputs, outputs)
        if found is not None:
            yield found


def _where(tensors: Sequence[Any], layout: LayoutMap, others: Layouts) -> Layouts:
    """One layout for every tensor of its rank that it can be split like, the others' own."""
    ndim = len({part.axis for part in layout.parts})
    factors = {p.axis: p.factor for p in layout.parts if p.factor > 1}

    def fits(shape: Sequence[Any]) -> bool:
        return len(shape) == ndim and all(
            isinstance(shape[a], int) and shape[a] % f == 0 for a, f in factors.items()
        )

    return [layout if fits(t.shape) else own for t, own in zip(tensors, others, strict=True)]


def _before(info: OpInfo) -> Before:
    return Before(
        info.attrs, tuple(t.shape for t in info.inputs), tuple(t.shape for t in info.outputs)
    )
