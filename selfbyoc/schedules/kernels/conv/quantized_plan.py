"""The plan of a convolution of levels: of words of channels, of words of columns of a window, by
Winograd, or of floats that hold integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....codegen.info.op_record import describe
from ....codegen.info.ops import Ops, OpView, Packing
from ....machine import Machine
from ....tvm.own_ops import LEVELS_OF, PAIRS
from ...steps.faults import Faults, unlike
from ..winograd import plan as winograd
from ..winograd.integers import MOST_OF_WORDS
from ..winograd.plan import WinogradPlan
from ..words import (
    WIDE,
    machine_of_words,
    products_as_packed,
    usual_products,
    weight_of,
    words_of,
)
from . import columns
from .groups.plan import RANK as GROUPS_RANK
from .layer import Layer
from .pixels.plan import decided_pixels, usual_pixels
from .plan import ConvPlan, ConvPlans, plan_directly, plan_groups

LEAST_CHANNELS = 3  # of a group, for words
# For words of columns; of less floats with groups as lanes are faster. 3x3 at stride 1, one core of
# Zen 3: 960x7x7 58 us and 51 of words, 960x4x4 26 and 38, 1152x2x2 16 and 25 (Nov 2026).
LEAST_PIXELS = 32


def is_of_words(weight: Sequence[int]) -> bool:
    """Whether a weight [O, I, H, W] fills words of channels."""
    return weight[1] >= LEAST_CHANNELS


def is_of_columns(conv: OpView) -> bool:
    """Whether each channel has a window of its own that fills words of columns."""
    weight, attrs = conv.inputs[1][0], conv.attrs
    fits = attrs["strides"][1] in columns.STEPS and attrs["dilation"][1] == 1
    return fits and attrs["groups"] > 1 == weight[1] < weight[3]


@dataclass(frozen=True)
class QuantizedPlan:
    """The plan of a convolution of words, or of floats that hold integers."""

    convs: ConvPlans  # of one
    groups: int
    products: str  # of words, their kind; empty: floats
    columns: int = 0  # of a window whose words are of neighbouring columns; 0: they are of channels

    def __str__(self) -> str:
        if not self.products:
            return f"{self.convs}, of exact floats"
        return f"{self.convs}, of words of {self.word}{' columns' if self.columns else ''}"

    @property
    def axis(self) -> int:
        """Of a weight [O, I, H, W], along which words lie."""
        return columns.AXIS if self.columns else 1

    @property
    def word(self) -> int:
        """Levels of one."""
        return LEVELS_OF[self.products]

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the plan that it is made of, and of what it is for."""
        (conv,) = ops.of("conv2d")
        yield from unlike("groups", self.groups, conv.attrs["groups"])
        products = PAIRS if isinstance(self.conv, WinogradPlan) else products_of(ops, cpu)
        yield from unlike("products", self.products, products)
        wide = conv.inputs[1][0][3] if products and is_of_columns(conv) else 0
        yield from unlike("columns of a window of words", self.columns, wide)
        cpu = machine_of_words(cpu, products) if products else cpu
        yield from self.convs.faults(_ops_of(ops, products), cpu)

    @property
    def conv(self) -> ConvPlan:
        """Of the convolution."""
        ((_, found),) = self.convs.plans
        return found


def products_of(ops: Ops, cpu: Machine) -> str:
    """The kind of products of a convolution's words; empty where it is one of floats."""
    (conv,) = ops.of("conv2d")
    weight = conv.inputs[1][0]
    if is_of_words(weight):
        return products_as_packed(ops, cpu, weight[1])
    packed, (high, wide) = weight_of(ops)[0].shape, conv.outputs[0][0][2:]
    if packed is None:
        pays = columns.pays(cpu) and high * wide >= LEAST_PIXELS
    else:  # the sums behind its one input say of what it is
        pays = len(packed) < GROUPS_RANK and packed[1] > 1
    if not pays or not is_of_columns(conv):
        return ""
    return products_as_packed(ops, cpu, weight[3], columns.AXIS)


def _ops_of(ops: Ops, products: str) -> Ops:
    """The convolution alone, as one of words or of floats, with its weight's packing."""
    (conv,), (packing, _) = ops.of("conv2d"), weight_of(ops)
    (image, _), (weight, _) = conv.inputs[:2]
    inputs = [(image, "float32"), (weight, "float32")]
    if products and weight[1] > 1:
        depth = words_of(weight[1], LEVELS_OF[products])
        image = (image[0], conv.attrs["groups"] * depth, *image[2:])
        inputs = [(image, "int32"), ((weight[0], depth, *weight[2:]), "int32")]
    info = describe(
        conv.name, conv.kind, conv.attrs, inputs, [(conv.outputs[0].shape, conv.outputs[0].dtype)]
    )
    return Ops([info], operands={(conv.name, 1): packing})


def plan(ops: Ops, machine: Machine) -> QuantizedPlan:
    """The plan of the convolution as one of words, or of floats."""
    by_winograd = _winograd(ops, machine)
    if by_winograd is not None:
        return by_winograd
    products = products_of(ops, machine)
    if not products:
        return _of_floats(ops, machine)
    (asked,), machine = ops.of("conv2d"), machine_of_words(machine, products)
    alone, groups = _ops_of(ops, products), asked.attrs["groups"]
    if not is_of_columns(asked):  # that alone may be: of one word a group
        return QuantizedPlan(plan_directly(alone, machine), groups, products)
    (conv,) = alone.of("conv2d")
    layer = Layer.of(conv)  # its lanes are pixels, as those of floats
    found = decided_pixels(layer, usual_pixels(layer, machine), machine)
    convs = ConvPlans(((conv.name, found),), machine)
    return QuantizedPlan(convs, groups, products, layer.window[1])


def _of_floats(ops: Ops, machine: Machine) -> QuantizedPlan:
    alone = _ops_of(ops, "")
    (conv,) = alone.of("conv2d")
    found = plan_groups(alone, conv, machine)
    if found is None:
        convs = plan_directly(alone, machine)
    else:
        convs = ConvPlans(((conv.name, found),), machine)
    return QuantizedPlan(convs, conv.attrs["groups"], "")


def _winograd(ops: Ops, machine: Machine) -> QuantizedPlan | None:
    """The plan by Winograd, of words of two levels on every CPU, or None where it does not pay."""
    (conv,), (packing, dtype) = ops.of("conv2d"), weight_of(ops)
    weight = conv.inputs[1][0]
    if dtype == WIDE or not is_of_words(weight) or math.prod(weight[1:]) > MOST_OF_WORDS:
        return None
    (alone,) = _ops_of(ops, PAIRS).of("conv2d")
    image, kernel = (value[0] for value in alone.inputs)
    known = packing.shape, packing.ahead, _levels_at_once(packing, machine)
    machine, out = machine_of_words(machine, PAIRS), alone.outputs[0][0]
    found = winograd.plan(image, kernel, alone.attrs, out, machine, conv.name, *known)
    if found is None:
        return None
    return QuantizedPlan(ConvPlans(((conv.name, found),), machine), 1, PAIRS)


def _levels_at_once(packing: Packing, machine: Machine) -> float:
    """Levels that the direct convolution multiplies in the time of a word of Winograd's."""
    direct = machine.product(usual_products(packing, machine))
    return LEVELS_OF[direct.kind] * machine.product(PAIRS).time / direct.time
