"""One composite for a convolution and all elementwise ops that follow it: a rule of fusion.

`elementwise` stands for any number of ops; what they read beside the chain is operand_0, operand_1,
... of the match. Runs unchanged on Relay and on Relax.
"""

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, elementwise, emit, op

PADDING = (1, 1, 1, 1)


def alone(x, weight):
    """No op after it."""
    return op.conv2d(x, weight, padding=PADDING)


def scaled(x, weight, scale, residual):
    """Five ops, which read two tensors more."""
    y = op.multiply(op.conv2d(x, weight, padding=PADDING), scale)
    return op.relu(op.add(op.tanh(op.negative(y)), residual))


ARGS = {"x": (1, 3, 17, 15), "weight": (8, 3, 3, 3)}
MORE = {"scale": (8, 1, 1), "residual": (1, 8, 17, 15)}

conv2d_any = Composite(
    "conv2d_any",
    lambda x, weight: elementwise(op.conv2d(x, weight)),
    cases=(Case(scaled, **ARGS, **MORE), Case(alone, **ARGS)),
    why="the epilogue is applied to sums in registers, whatever it is",
)


def main():
    """The same composite takes both."""
    rng = np.random.default_rng(0)
    for program, shapes in ((alone, ARGS), (scaled, {**ARGS, **MORE})):
        mod = emit(program, shapes)
        parted = selfbyoc.partition_for_tefuse(mod, composites=[conv2d_any])
        arrays = {n: rng.standard_normal(s, np.float32) for n, s in shapes.items()}
        tvm_alone = selfbyoc.build(mod, composites=[])
        (found,), (wanted,) = selfbyoc.build(parted)(**arrays), tvm_alone(**arrays)
        print(f"{program.__name__}: {selfbyoc.report(parted).counts}")
        print(f"  agrees with TVM alone: {np.allclose(found, wanted, rtol=1e-4, atol=1e-4)}")


if __name__ == "__main__":
    main()
