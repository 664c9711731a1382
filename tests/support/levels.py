"""Levels of 8 bits in NumPy."""

import numpy as np

from selfbyoc.tvm import GENERATION

F32 = np.float32
HALF = np.nextafter(F32(0.5), F32(0))


def level(x, scale, zero, dtype="uint8"):
    """What a quantize gives, in float32 as the op divides; halves to even on Relax only."""
    quotient = x.astype(F32) / F32(scale)
    even = (
        np.round(quotient)
        if GENERATION == "relax"
        else np.trunc(quotient + np.copysign(HALF, quotient))
    )
    limits = np.iinfo(dtype)
    return np.clip(even + F32(zero), limits.min, limits.max).astype(dtype)


def sums(x, weight, zero, groups=1, padding=1):
    """The sums of a convolution of levels, in int64."""
    wide = np.pad(x.astype("int64") - zero, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    outputs, inner, high, across = weight.shape
    rows, columns = (wide.shape[2] - high + 1, wide.shape[3] - across + 1)
    found = np.zeros((len(x), outputs, rows, columns), "int64")
    for o in range(outputs):
        first = o // (outputs // groups) * inner
        part = wide[:, first : first + inner]
        for y, z in np.ndindex(high, across):
            window = part[:, :, y : y + rows, z : z + columns]
            found[:, o] += np.einsum("nchw,c->nhw", window, weight[o, :, y, z].astype("int64"))
    return found


def window_sums(x, weight, zero, groups=1, padding=0, strides=1, dilation=1):
    """The same of any number of axes, with what a convolution has besides, alike along all."""
    axes = weight.ndim - 2
    apart = (slice(None), slice(None), *[slice(None, None, dilation)] * axes)
    taps = [(extent - 1) * dilation + 1 for extent in weight.shape[2:]]
    spread = np.zeros((*weight.shape[:2], *taps), "int64")
    spread[apart] = weight
    padded = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * axes, constant_values=zero)
    if axes == 1:
        padded, spread = padded[:, :, None], spread[:, :, None]
    found = sums(padded, spread, zero, groups, 0)
    return found[:, :, 0, ::strides] if axes == 1 else found[:, :, ::strides, ::strides]


def bytes_of(rng, shape, dtype):
    """Random ones, the ends of the range among them often: what saturates, if anything does."""
    limits = np.iinfo(dtype)
    found = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.where(
        rng.random(shape) < 0.3, rng.choice([limits.min, limits.max], shape), found
    ).astype(dtype)
