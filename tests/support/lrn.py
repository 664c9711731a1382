"""What local response normalisation means, in NumPy."""

import numpy as np


def meaning(x, size, alpha, beta, bias):
    half, channels = size // 2, x.shape[1]
    squares = np.pad(x.astype("float64") ** 2, ((0, 0), (half, half), (0, 0), (0, 0)))
    total = sum(squares[:, i : i + channels] for i in range(size))
    return x / (bias + alpha / size * total) ** beta
