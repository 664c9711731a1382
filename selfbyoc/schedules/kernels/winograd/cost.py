"""The time of a Winograd convolution on a machine, beside the direct one's: a model.

Times are cycles of all cores, for each pair of an input and an output channel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....machine import Machine
from ....ops.winograd import is_allowed
from ....tvm.types import Attrs
from ...steps.tiles import BLOCK
from .integers import FORMS_OF_WORDS, LEVELS
from .matrices import FORMS
from .tasks import usual_tiling, work
from .tiling import apart, as_images

# Measured on two cores of Zen 5, AVX-512, Nov 2026, as parts of their 32 multiply-adds a cycle.
DIRECT_TIME = 1.1  # the direct convolution's products, beside Winograd's
PIXEL_CYCLES = 1.5  # cycles to pad a pixel or to store one, before squares were transposed
# Cycles to transform the vectors of a tile, one channel to a lane, its pixels aside; by m and r.
TRANSFORM_CYCLES = {(2, 3): 25, (4, 3): 100, (2, 5): 150}
LEAST_GAIN = 1.1  # less is within the error of this model, and direct weights are smaller
MOST_UNSURE = 1.25  # times this near may be the other way round: the tuner measures them


@dataclass(frozen=True)
class Cost:
    """The time of a convolution, in cycles a pair of channels."""

    products: float
    reading: float  # of the weights from memory, as in a whole model, where L3 forgets them
    rest: float

    @property
    def time(self) -> float:
        """In all."""
        return max(self.products, self.reading) + self.rest


def forms(
    image: Sequence[int],
    kernel: Sequence[int],
    attrs: Attrs,
    out: Sequence[int],
    direct_word: float = 0,
) -> list[int]:
    """0 and the m of every F(m, r) that a convolution can be."""
    window, known = kernel[2], FORMS_OF_WORDS if direct_word else FORMS
    plain = window in known and kernel[3] == window and attrs["groups"] == 1
    plain = plain and tuple(attrs["strides"]) == (1, 1) and len(set(attrs["dilation"])) == 1
    plain = plain and min(image[1] * (LEVELS if direct_word else 1), out[1]) >= BLOCK
    return [0, *known[window]] if is_allowed() and plain else [0]


def costs(
    image: Sequence[int],
    kernel: Sequence[int],
    attrs: Attrs,
    out: Sequence[int],
    cpu: Machine,
    direct_word: float = 0,
    direct_bytes: int = 4,
    direct_time: float = 1.0,
) -> dict[int, Cost]:
    """Of every F(m, r) that a convolution can be, by m; the direct one's is at 0.

    Of words of two levels, channels of the image are words; the direct convolution multiplies
    `direct_word` levels meanwhile. An element of its weight has `direct_bytes`, of one that is
    transformed four. Its products take `direct_time` of what those of floats do.
    """
    window, pixels = kernel[2], out[0] * out[2] * out[3]
    images = as_images(out, apart(attrs))
    sides = (1 / image[1] + 1 / out[1]) / cpu.cores  # what is done once a channel
    peak = cpu.multiply_adds * cpu.lanes("float32") * cpu.cores

    def cost(m: int) -> Cost:
        if m == 0:
            depth = LEVELS / direct_word if direct_word else 1.0
            products = direct_time * depth * DIRECT_TIME * window**2 * pixels / peak
            reading = depth * direct_bytes * window**2 / cpu.shared_bandwidth
            return Cost(products, reading, PIXEL_CYCLES * pixels * sides)
        channels = (image[1], out[1])
        t = usual_tiling(images, m, window, channels, cpu)
        products = t.size**2 * work(t, channels, cpu)
        each = m**2 * PIXEL_CYCLES + TRANSFORM_CYCLES[m, window] / cpu.lanes("float32")
        return Cost(products, 4 * t.size**2 / cpu.shared_bandwidth, each * t.count * sides)

    return {m: cost(m) for m in forms(image, kernel, attrs, out, direct_word)}


def usual_form(batches: Sequence[dict[int, Cost]]) -> int:
    """The m of the F(m, r) that takes the least time beside the best one of each batch, in their
    geometric mean; 0 where it is the direct convolution.
    """
    least = [min(cost.time for cost in found.values()) for found in batches]

    def beside(m: int) -> float:
        ratios = (found[m].time / time for found, time in zip(batches, least, strict=True))
        return math.prod(ratios) ** (1 / len(batches))

    best = min(batches[0], key=beside)
    return best if beside(0) > LEAST_GAIN * beside(best) else 0


def near(found: dict[int, Cost], usual: int) -> list[int]:
    """This m, and others that may be as fast.

    None that waits for its weights: to a loop over one kernel, whose weights are in the last cache,
    it would look faster than it is in a model.
    """
    least = min(cost.time for cost in found.values())
    good = [m for m, c in found.items() if c.reading <= c.products and c.time < MOST_UNSURE * least]
    return sorted({usual, *good})
