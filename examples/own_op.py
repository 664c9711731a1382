"""An op that TVM does not have, and a kernel that holds it: no C++, no fork.

CLIP's quick GELU, x * sigmoid(1.702 x). Importers write it as three ops, which are read as the one
that is declared here; a convolution and it then are one kernel. Runs unchanged on Relay and on
Relax.
"""

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, declare, emit, op
from selfbyoc.tvm import tir

quick_gelu = declare(
    "quick_gelu",
    compute=lambda x: x * tir.sigmoid(x * 1.702),
    numpy=lambda x: x / (1 + np.exp(-1.702 * x)),
    means=lambda x: op.multiply(x, op.sigmoid(op.multiply(x, 1.702))),
)


def spelled(x, weight):
    """What an importer makes of it: the last factor first, the ops that `means` describes."""
    y = op.conv2d(x, weight, padding=(1, 1, 1, 1), strides=(2, 2))
    return op.multiply(op.sigmoid(op.multiply(1.702, y)), y)


conv2d_quick_gelu = Composite(
    "conv2d_quick_gelu",
    lambda x, weight: quick_gelu(op.conv2d(x, weight)),
    cases=(Case(spelled, x=(1, 3, 33, 31), weight=(16, 3, 3, 3), constants=("weight",)),),
    why="the activation is applied to sums in registers",
)


def main():
    """A model as an importer writes it: one kernel, and right."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((16, 3, 3, 3), np.float32)
    mod = emit(spelled, {"x": (1, 3, 33, 31)}, {"weight": weight})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[conv2d_quick_gelu])
    print(selfbyoc.report(parted))
    x = rng.standard_normal((1, 3, 33, 31), np.float32)
    (found,), (alone,) = selfbyoc.build(parted)(x), selfbyoc.build(mod, composites=[])(x)
    print(f"agrees with the three ops: {np.allclose(found, alone, rtol=1e-4, atol=1e-4)}")


if __name__ == "__main__":
    main()
