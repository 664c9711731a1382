"""Composites of a package: CLIP's quick GELU, x * sigmoid(1.702 x), after products."""

import numpy as np

from selfbyoc import Case, Composite, declare, op
from selfbyoc.tvm import tir

quick_gelu = declare(
    "clip_quick_gelu",  # ops, as composites, have one name each: the package's is in front
    compute=lambda x: x * tir.sigmoid(x * 1.702),
    numpy=lambda x: x / (1 + np.exp(-1.702 * x)),
    means=lambda x: op.multiply(x, op.sigmoid(op.multiply(x, 1.702))),
)

dense_quick_gelu = Composite(
    "clip_dense_quick_gelu",
    lambda x, weight, bias: quick_gelu(op.bias_add(op.dense(x, weight), bias)),
    cases=(Case(x=(9, 33), weight=(17, 33), bias=(17,), constants=("weight", "bias")),),
    why="the activation is applied to finished sums",
)

conv2d_quick_gelu = Composite(
    "clip_conv2d_quick_gelu",
    lambda x, weight: quick_gelu(op.conv2d(x, weight)),
    cases=(Case(x=(1, 3, 9, 11), weight=(5, 3, 3, 3), constants=("weight",)),),
    why="the activation is applied to finished sums",
)

composites = [dense_quick_gelu, conv2d_quick_gelu]
