"""The plans of the convolutions of a composite: Winograd's where it pays, else a direct form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....codegen.info.ops import Ops, OpView
from ....language.decisions import choose, for_every_size, undecided
from ....machine import Machine
from ....tvm.own_ops import BFLOATS
from ....tvm.types import Shape
from ...steps.faults import Faults, unlike
from ..bfloat16 import WORD
from ..winograd import plan as winograd
from ..winograd.plan import WinogradPlan
from ..words import machine_of_words
from .channels.candidates import usual_channels
from .channels.plan import ChannelPlan, decided_channels
from .depthwise.plan import decided_depthwise, usual_depthwise
from .groups.cost import MOST_UNSURE, groups_time, pixels_time
from .groups.plan import RANK as GROUPS_RANK
from .groups.plan import GroupPlan, planned_groups
from .layer import Layer
from .pack import whole_blocks
from .pixels.plan import PixelPlan, decided_pixels, plan_window, usual_pixels
from .pointwise.plan import decided_pointwise, usual_pointwise
from .rounded import DirectPlan, RoundedPlan, is_of_words, time_of_words

UNLIKE_DIRECT = (GroupPlan, WinogradPlan)
ConvPlan = DirectPlan | RoundedPlan | GroupPlan | WinogradPlan
MOST_L2 = 4  # times L2, of a task with groups as lanes

# What lies in the lanes: pixels of the image as one row, channels, pixels of padded rows as one, or
# of a row by itself.
FLAT, CHANNELS, PIXELS, ROW = LANES = ("flat pixels", "channels", "pixels", "a row")
# Lanes of a pool's task: 1 KB, which TVM keeps on the stack. 192x28x28, 3x3 at stride 1: 39.5 us
# with 832 lanes, 22 with 203; 64x27x27 13.8 and 8.2 (two cores of Zen 5, Nov 2026).
POOL_LANES = 256
LEAST_USE = 0.25  # of a pool's lanes; below, as of a window over the image, TVM's compute is better


@dataclass(frozen=True)
class Candidates:
    """Plans of one form for a layer, the best first, and what decides for one of them."""

    layer: Layer
    plans: Sequence[Any]
    decided: Callable[..., Any]


@dataclass(frozen=True)
class ConvPlans:
    """The plan of each convolution and pool, by the name of its op."""

    plans: tuple[tuple[str, ConvPlan], ...]
    machine: Machine  # for the ops between them

    def __str__(self) -> str:
        return "; ".join(str(plan) for _, plan in self.plans)

    def of(self, name: str) -> Any:
        """The plan of an op, or None where it is computed as any other one."""
        return dict(self.plans).get(name)

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of all plans."""
        for op in (view for view in ops if self.of(view.name) is not None):
            found = self.of(op.name)
            if op.kind.endswith("pool2d"):
                own = found.faults(pool_layer(op), cpu)
            else:
                own = _faults_of(ops, op, found, cpu)
            yield from (f"{op.name}: {text}" for text in own)


def _faults_of(ops: Ops, conv: OpView, plan: ConvPlan, cpu: Machine) -> Faults:
    """Of a plan for a convolution, in the blocks that it packs its weight in, or that this came
    packed in.
    """
    of_words, is_direct = isinstance(plan, RoundedPlan), not isinstance(plan, UNLIKE_DIRECT)
    if is_direct:
        yield from unlike("of words", of_words, is_of_words(ops, conv, cpu))
    packed = ops.packing(conv, 1).shape if is_direct else None
    layer = Layer.of(conv, packed=packed, word=WORD if of_words else 1)
    if packed is None:
        layer = replace(layer, blocks=packed_blocks(layer, plan))
    yield from plan.faults(layer, cpu)


def packed_blocks(layer: Layer, plan: ConvPlan) -> tuple[int, int]:
    """The blocks that a direct plan packs a weight in; `layer` has those of pixels as lanes."""
    plan = plan.conv if isinstance(plan, RoundedPlan) else plan
    if isinstance(plan, ChannelPlan):
        return whole_blocks(layer.out[1], layer.groups)
    return layer.blocks


def plan(ops: Ops, machine: Machine) -> ConvPlans:
    """The plans of every conv2d and max_pool2d among the ops."""
    found = {conv.name: _plan_conv(ops, conv, machine) for conv in ops.of("conv2d")}
    for pool in ops.of("max_pool2d"):
        if (made := plan_pool(pool, machine)) is not None:
            found[pool.name] = made
    return ConvPlans(tuple(found.items()), machine)


def plan_directly(ops: Ops, machine: Machine) -> ConvPlans:
    """The plans of every conv2d without Winograd's, whose products of sums are no integers."""
    found = [(c.name, _direct(c, ops.packing(c, 1).shape, machine)) for c in ops.of("conv2d")]
    return ConvPlans(tuple(found), machine)


def _plan_conv(ops: Ops, conv: OpView, machine: Machine) -> ConvPlan:
    grouped = plan_groups(ops, conv, machine)
    if grouped is not None:
        return grouped
    found = plan_winograd(ops, conv, machine)
    if found is not None:
        return found
    packed = ops.packing(conv, 1).shape
    if is_of_words(ops, conv, machine):
        return RoundedPlan(_direct(conv, packed, machine_of_words(machine, BFLOATS), WORD))
    return _direct(conv, packed, machine)


def _direct(conv: OpView, packed: Shape | None, machine: Machine, word: int = 1) -> DirectPlan:
    """The direct form. Of a weight that came packed it is that which packed it, as far as blocks
    say: whoever tunes answers the questions of both plans at once. Else, as it was packed for
    another machine, whatever is best of its blocks.
    """
    if packed is not None and for_every_size():  # packed for all, and asked for each by itself
        return plan_direct(Layer.of(conv, packed=packed, word=word), machine)
    layer = Layer.of(conv, word=word)
    made = plan_direct(layer, machine, free=True)
    if packed is None or (packed[0], packed[-1]) == packed_blocks(layer, made):
        return made
    layer = Layer.of(conv, packed=packed, word=word)
    return plan_direct(replace(layer, name=f"{layer.name}_as_packed"), machine)


def plan_groups(ops: Ops, conv: OpView, machine: Machine) -> GroupPlan | None:
    """The plan with groups as lanes, or None where pixels are. A weight that came packed says by
    its rank what it was packed for; one that is no constant is not packed so at every call.
    """
    packing, layer = ops.packing(conv, 1), Layer.of(conv)
    if packing.shape is not None:
        return planned_groups(layer, machine) if len(packing.shape) == GROUPS_RANK else None
    return paying_groups(layer, machine) if packing.ahead else None


def paying_groups(layer: Layer, machine: Machine) -> GroupPlan | None:
    """The plan with groups as lanes where these take less time than pixels."""
    if layer.groups == 1:
        return None
    with undecided():  # it may not come to this plan's questions
        found = planned_groups(layer, machine)
    if found.task_bytes > MOST_L2 * machine.l2_bytes:
        return None
    times = groups_time(layer, found, machine), _direct_time(layer, machine)
    near, usual = max(times) < MOST_UNSURE * min(times), times[0] < times[1]
    ways = [True, False] if near else [usual]
    return planned_groups(layer, machine) if choose(f"{layer.name}.groups", ways, usual) else None


def _direct_time(layer: Layer, machine: Machine) -> float:
    """With pixels or channels as lanes, whichever takes less; the weight is packed for it."""
    pixels = pixels_time(layer, usual_pixels(layer, machine)[0])
    whole = replace(layer, blocks=whole_blocks(layer.out[1], layer.groups))
    cycles = [p.cycles for p in usual_channels(whole, machine)]
    cycles += [p.cycles for p in usual_depthwise(layer, machine)]
    return min([pixels, *(n * layer.steps for n in cycles)])


def plan_winograd(ops: Ops, conv: OpView, machine: Machine) -> WinogradPlan | None:
    """The plan of a convolution by Winograd, or None where it is a direct one."""
    packing, out = ops.packing(conv, 1), conv.outputs[0][0]
    image, kernel = (value[0] for value in conv.inputs[:2])
    time = time_of_words(machine) if is_of_words(ops, conv, machine) else 1.0
    known = packing.shape, packing.ahead, 0, 2 if packing.held else 4, time
    return winograd.plan(image, kernel, conv.attrs, out, machine, conv.name, *known)


def plan_direct(layer: Layer, machine: Machine, free: bool = False) -> DirectPlan:
    """The direct form that takes the least time. `free` is how the weight is packed: in whole
    vectors for lanes that are channels, else in blocks that leave few lanes without use.
    """
    whole = replace(layer, blocks=whole_blocks(layer.out[1], layer.groups)) if free else layer
    forms = forms_of_pixels(layer, machine)
    forms[ROW] = Candidates(layer, usual_depthwise(layer, machine), decided_depthwise)
    channels = usual_channels(whole, machine)
    if channels and channels[0].is_apart and not free:
        del forms[PIXELS]  # the weight is packed with zeros between its groups
    return fastest({**forms, CHANNELS: Candidates(whole, channels, decided_channels)}, machine)


def forms_of_pixels(layer: Layer, machine: Machine) -> dict[str, Candidates]:
    """The forms whose lanes are pixels, by what they are called."""
    flat = usual_pointwise(layer, machine)
    # Padded rows of pixels of a 1x1 window were never faster (192x28x28: 45.8 us flat, 80 so).
    pixels = [] if flat and layer.is_plain else usual_pixels(layer, machine)
    return {
        FLAT: Candidates(layer, flat, decided_pointwise),
        PIXELS: Candidates(layer, pixels, decided_pixels),
    }


def fastest(forms: Mapping[str, Candidates], machine: Machine) -> Any:
    """The plan of the form that takes the least time; a form without plans does not fit."""
    fitting = {name: forms[name] for name in LANES if name in forms and forms[name].plans}
    usual = min(fitting, key=lambda name: fitting[name].plans[0].cycles)
    layer = fitting[usual].layer
    form = fitting[choose(f"{layer.name}.lanes", list(fitting), usual)]
    return form.decided(form.layer, form.plans, machine)


def plan_pool(pool: OpView, machine: Machine) -> PixelPlan | None:
    """The plan of a pool over padded rows; None where these would leave most lanes without use."""
    layer = pool_layer(pool)
    made = plan_window(layer, layer.out[1], machine, POOL_LANES)
    return made if made.lanes.use >= LEAST_USE else None


def pool_layer(pool: OpView) -> Layer:
    """A pool as a convolution of each channel by itself."""
    image, out = pool.inputs[0][0], pool.outputs[0][0]
    kernel = (1, 1, *pool.attrs["pool_size"])
    return Layer(pool.name, image, kernel, out, pool.attrs, "float32", (1, 1))
