"""A built-in kernel under a pattern of one's own: convolution, hard swish and residual by Winograd.

`conv2d_add` knows a ReLU after its sum, and no activation before it. Its kernel serves any pattern
around a convolution: tiles, packed weights and Winograd's transforms follow from the op's shapes.
Runs unchanged on Relay and on Relax.
"""

import numpy as np

import selfbyoc
from selfbyoc import BUILTIN, Case, Registry, emit, op

SHAPE, PADDING = (1, 64, 56, 56), (1, 1, 1, 1)


def pattern(x, weight, bias, residual):
    """The arguments are named as those of conv2d_add, of which some may be missing."""
    y = op.bias_add(op.conv2d(x, weight), bias)
    return op.add(op.hard_swish(y), residual)


def block(x, weight, bias, residual):
    """The same as a model has it: with a window's padding."""
    y = op.bias_add(op.conv2d(x, weight, padding=PADDING), bias)
    return op.add(op.hard_swish(y), residual)


conv2d_add = Registry(BUILTIN)["conv2d_add"]
conv2d_hard_swish_add = conv2d_add.with_pattern(
    "conv2d_hard_swish_add",
    pattern,
    why="activation and residual are applied while the tile is in registers",
    cases=(
        Case(
            block,
            x=(2, 7, 19, 17),
            weight=(7, 7, 3, 3),
            bias=(7,),
            residual=(2, 7, 19, 17),
            constants=("weight", "bias"),
        ),
    ),
)


def main():
    """One kernel, by Winograd, as TVM computes it alone."""
    rng = np.random.default_rng(0)
    weights = {
        "weight": rng.standard_normal((64, 64, 3, 3), np.float32) / 24,
        "bias": rng.standard_normal(64, np.float32),
    }
    mod = emit(block, {"x": SHAPE, "residual": SHAPE}, weights)
    parted = selfbyoc.partition_for_tefuse(mod, composites=[conv2d_hard_swish_add])
    print(selfbyoc.report(parted))
    (kernel,) = selfbyoc.melting(parted).kernels
    print("by Winograd:", kernel.level.plan.startswith("Winograd"))
    x, residual = (rng.standard_normal(SHAPE, np.float32) for _ in range(2))
    (found,) = selfbyoc.build(parted)(x=x, residual=residual)
    (alone,) = selfbyoc.build(mod, composites=[])(x=x, residual=residual)
    print(f"agrees with TVM alone: {np.allclose(found, alone, rtol=1e-4, atol=1e-4)}")


if __name__ == "__main__":
    main()
