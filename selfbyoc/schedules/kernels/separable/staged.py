"""One convolution after the other: where a window, a stride or a padding asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...._tvm import current_target, te
from ..conv import direct, direct_schedule
from .layers import Layer
from .pack import unfolded

Tensor = Any


@dataclass(frozen=True)
class StagedPlan:
    """The convolutions by themselves, each as the direct kernel plans it."""

    ops: Any  # of the composite
    names: tuple[str, ...]  # of the convolutions
    fold: int = 1  # packed as any plan reads it
    lanes: int = 1

    def __str__(self) -> str:
        return f"{len(self.names)} convolutions, stage by stage"

    @classmethod
    def of(cls, ops: Any) -> StagedPlan:
        """The plan of a composite's convolutions."""
        return cls(ops, tuple(conv.name for conv in ops.of("conv2d")))


@dataclass(frozen=True)
class StagedStages:
    """What a schedule of the stages needs: the direct kernels find theirs."""

    result: Tensor


def compute(x: Tensor, convs: Sequence[Layer], residual: Tensor | None, name: str) -> StagedStages:
    """Each convolution and what follows it; the residual is added to the last one."""
    for layer in convs:
        out, weight = layer.conv.outputs[0][0], layer.weight
        if int(weight.shape[1]) < layer.channels:
            weight = unfolded(weight, out[1], layer.channels)
        sums = direct.convolution(x, weight, layer.conv.attrs, out, layer.conv.name)
        last = layer is convs[-1]
        x = _activated(sums, layer, residual if last else None, name if last else "")
    return StagedStages(x)


def _activated(sums: Tensor, layer: Layer, residual: Tensor | None, name: str) -> Tensor:
    def element(n: Any, o: Any, y: Any, x: Any) -> Any:
        value = layer.applied(sums(n, o, y, x), o)
        return value if residual is None else value + residual(n, o, y, x)

    return te.compute(sums.shape, element, name=name or f"{layer.conv.name}_activated")


def schedule(sch: Any, plan: StagedPlan) -> None:
    """Stage by stage."""
    direct_schedule.schedule(sch, plan.ops, current_target())
