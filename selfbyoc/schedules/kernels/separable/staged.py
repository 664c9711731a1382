"""One convolution after the other: where a window, a stride or a padding asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....codegen.elementwise import Widened
from ....codegen.info.ops import Ops, OpView
from ....graph import OpCall
from ....machine import Machine
from ....tvm import te
from ....tvm.types import PrimExpr, Schedule, Tensor
from ...steps.faults import Faults, unlike
from ...steps.tensors import View, extents
from ...steps.tiles import BLOCK, blocks_of
from ..bfloat16 import WORD, machine_of, steps_of
from ..conv import kernel, staged, widened
from ..conv.form import Conv2d
from ..conv.groups.plan import GroupPlan
from ..conv.layer import Layer as Window
from ..conv.plan import ConvPlan, ConvPlans, paying_groups, plan_direct
from ..conv.rounded import RoundedPlan
from ..conv.staged import StagedStages
from .layers import Layer
from .pack import unfolded
from .rounded import is_of_words


@dataclass(frozen=True)
class StagedPlan:
    """The convolutions by themselves, each by a plan of its own."""

    convs: ConvPlans
    fold: int = 1  # packed as any plan reads it
    padded: int = 0  # channels that tables have values of at least

    def __str__(self) -> str:
        return f"stage by stage; {self.convs}"

    @property
    def words(self) -> tuple[bool, bool]:
        """Whether the first and the last convolution are of words of bfloat16."""
        first, *_, last = (isinstance(found, RoundedPlan) for _, found in self.convs.plans)
        return first, last

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the convolutions, packed as any plan reads them."""
        yield from unlike("folded and padded", (self.fold, self.padded), (1, 0))
        for conv in ops.of("conv2d"):
            made, of_words = self.convs.of(conv.name), is_of_words(ops, conv, cpu)
            found = [*unlike("of words", isinstance(made, RoundedPlan), of_words)]
            found += made.faults(_packed(conv, of_words), cpu)
            yield from (f"{conv.name}: {text}" for text in found)

    @classmethod
    def of(cls, ops: Ops, machine: Machine) -> StagedPlan:
        """The plan of a composite's convolutions."""
        found = [(conv.name, _plan(ops, conv, machine)) for conv in ops.of("conv2d")]
        return cls(ConvPlans(tuple(found), machine))


def _plan(ops: Ops, conv: OpView, machine: Machine) -> ConvPlan:
    if is_of_words(ops, conv, machine):
        return RoundedPlan(plan_direct(_packed(conv, True), machine_of(machine, True)))
    layer = _packed(conv)
    is_single = layer.is_depthwise and layer.out[1] == layer.groups
    grouped = paying_groups(layer, machine) if is_single else None
    return grouped or plan_direct(layer, machine)


def _packed(conv: OpView, of_words: bool = False) -> Window:
    """A convolution whose weight is packed in whole blocks, whatever its groups."""
    out, *inner = conv.inputs[1][0]
    layer = Window.of(conv, packed=(blocks_of(out), *inner, BLOCK), word=WORD if of_words else 1)
    return replace(layer, is_across=layer.groups > 1 and out // layer.groups % BLOCK > 0)


def compute(
    x: Tensor, convs: Sequence[Layer], residual: Tensor | None, name: str, plan: StagedPlan
) -> StagedStages:
    """Each convolution and what follows it; the residual is added to the last one."""
    stages = {}
    for layer in convs:
        conv, weight = layer.conv, layer.weight
        out = conv.outputs[0][0]
        found = plan.convs.of(conv.name)
        channels = steps_of(layer.channels, isinstance(found, RoundedPlan))
        if int(weight.shape[1]) < channels:
            weight = unfolded(weight, out[1], channels, conv.name)
        if isinstance(found, GroupPlan):
            weight = _of_groups(weight)
        made = kernel.convolution(Conv2d(x, weight, conv.attrs, out, conv.name), found)
        stages[conv.name] = made
        last = layer is convs[-1]
        x = _activated(made.result, layer, residual if last else None, name if last else "")
    return StagedStages(x, stages)


def _of_groups(weight: Tensor) -> View | Widened:
    """A depthwise weight as lanes that are groups read it, one channel before and after each: it
    lies so.
    """
    if isinstance(weight, Widened):
        return Widened(_of_groups(weight.halves))
    blocks, _, *window, lanes = extents(weight)
    shape = (blocks, 1, 1, *window, lanes)
    return View(shape, weight.dtype, lambda b, o, *index: weight(b, *index))


def _activated(sums: Tensor, layer: Layer, residual: Tensor | None, name: str) -> Tensor:
    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        value = layer.applied(sums(n, o, y, x), o)
        return value if residual is None else value + residual(n, o, y, x)

    return te.compute(sums.shape, element, name=name or f"{layer.conv.name}_activated")


def schedule(sch: Schedule, stages: StagedStages, plan: StagedPlan) -> None:
    """Stage by stage."""
    staged.schedule(sch, stages, plan.convs)


def widens(plan: object, call: OpCall) -> str:
    """Why the weight of a convolution is packed as floats; by blocks of channels, none is."""
    return widened.widens(plan.convs, call) if isinstance(plan, StagedPlan) else ""
