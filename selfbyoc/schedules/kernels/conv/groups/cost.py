"""The time of a convolution with groups as lanes on a machine, beside that with pixels as lanes."""

from __future__ import annotations

import math

from .....machine import Machine
from ....steps.tiles import BLOCK, RegisterTile, blocks_of
from ..layer import Layer
from ..pixels.plan import PixelPlan
from ..tiles import time_of
from .plan import GroupPlan

# Cycles of a core, measured on Zen 5 with AVX-512, Nov 2026: 2x2 to 56x56 pixels, 3x3 to 7x7.
DEPTHWISE_TIME = 1.4  # of products where each reads its pixel, beside the peak's
APART_TIME = 2.0  # where the rows of a register tile are of several groups and share no pixels
MOST_UNSURE = 1.25  # times this near may be the other way round: the tuner measures them


def groups_time(layer: Layer, plan: GroupPlan, cpu: Machine) -> float:
    """Cycles of the core with most tasks: products, and vectors that are turned or padded."""
    channels, rows, columns = plan.tile
    shape = RegisterTile(rows * columns, channels)
    each, inner = layer.kernel[0] // plan.groups, layer.kernel[1]
    pixels = layer.out[2] * layer.out[3]
    step = DEPTHWISE_TIME * shape.sums / cpu.multiply_adds
    if not layer.is_depthwise:
        step = time_of(shape, cpu)
    products = each * pixels / shape.sums * step * layer.steps
    turned = inner * math.prod(plan.image) + each * pixels
    vectors = products + turn_cycles(plan, cpu.loads) * turned + inner * math.prod(plan.framed)
    tasks = layer.out[0] * blocks_of(plan.groups)
    cycles = vectors * BLOCK / plan.vector + _streamed(layer, plan, cpu)
    return cycles * tasks * cpu.unevenness(tasks) / cpu.cores + _waiting(layer, plan, cpu)


def _streamed(layer: Layer, plan: GroupPlan, cpu: Machine) -> float:
    """For the weights of a task that L1 does not hold: each tile of pixels reads them from L2.
    440x7x7 in groups of 8, 3x3, one core of Zen 3: 195 us, channels as lanes 78 (Nov 2026).
    """
    weights = 4 * BLOCK * layer.out[1] // plan.groups * layer.steps
    if weights <= cpu.l1_bytes:
        return 0.0
    _, rows, columns = plan.tile
    return layer.out[2] * layer.out[3] / (rows * columns) * weights / cpu.l2_bandwidth


def turn_cycles(plan: GroupPlan, loads: int = 2) -> float:
    """To transpose and store a vector, of a CPU with so many loads a cycle."""
    return (1 + 1 / loads) * math.log2(plan.vector)


def _waiting(layer: Layer, plan: GroupPlan, cpu: Machine) -> float:
    """For half of what is moved, where L2 does not hold a task: rows of 16 channels are more
    streams than the hardware prefetches. 48x184x184, 3x3: 740 us, pixels as lanes 415 (Zen 4).
    """
    if plan.task_bytes <= cpu.l2_bytes:
        return 0.0
    moved = 4 * (math.prod(layer.image) + math.prod(layer.out))
    return moved / 2 / cpu.shared_bandwidth


def pixels_time(layer: Layer, plan: PixelPlan) -> float:
    """The same with pixels as lanes."""
    shared = (layer.out[1] // layer.attrs["groups"]) % layer.blocks[1] == 0
    return plan.cycles * layer.steps * (1.0 if shared or layer.is_depthwise else APART_TIME)
