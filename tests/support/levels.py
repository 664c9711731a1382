"""Levels of 8 bits in NumPy."""

import numpy as np

F32 = np.float32


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


def bytes_of(rng, shape, dtype):
    """Random ones, the ends of the range among them often: what saturates, if anything does."""
    limits = np.iinfo(dtype)
    found = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.where(
        rng.random(shape) < 0.3, rng.choice([limits.min, limits.max], shape), found
    ).astype(dtype)
