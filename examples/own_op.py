"""An op that TVM does not have, and a kernel that holds it: no C++, no fork.

MobileNetV3's hard swish, x * clip(x + 3, 0, 6) / 6. Importers write it as four ops, which are read
as the one that is declared here; a convolution and it then are one kernel. Runs unchanged on Relay
and on Relax.
"""

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, declare, emit, op
from selfbyoc._tvm import tir

hard_swish = declare(
    "hard_swish",
    compute=lambda x: x * tir.Min(tir.Max(x + 3.0, 0.0), 6.0) * (1 / 6),
    numpy=lambda x: x * np.clip(x + 3, 0, 6) / 6,
    means=lambda x: op.multiply(x, op.divide(op.clip(op.add(x, 3.0), a_min=0.0, a_max=6.0), 6.0)),
)


def spelled(x, weight):
    """What an importer makes of it: the last factor first, the ops that `means` describes."""
    y = op.conv2d(x, weight, padding=(1, 1, 1, 1), strides=(2, 2))
    return op.multiply(op.divide(op.clip(op.add(y, 3.0), a_min=0.0, a_max=6.0), 6.0), y)


conv2d_hard_swish = Composite(
    "conv2d_hard_swish",
    lambda x, weight: hard_swish(op.conv2d(x, weight)),
    cases=(Case(spelled, x=(1, 3, 33, 31), weight=(16, 3, 3, 3), constants=("weight",)),),
    why="the activation is applied to sums in registers",
)


def main():
    """A model as an importer writes it: one kernel, and right."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((16, 3, 3, 3), np.float32)
    mod = emit(spelled, {"x": (1, 3, 33, 31)}, {"weight": weight})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[conv2d_hard_swish])
    print(selfbyoc.report(parted))
    x = rng.standard_normal((1, 3, 33, 31), np.float32)
    (found,), (alone,) = selfbyoc.build(parted)(x), selfbyoc.build(mod, composites=[])(x)
    print(f"agrees with the four ops: {np.allclose(found, alone, rtol=1e-4, atol=1e-4)}")


if __name__ == "__main__":
    main()
