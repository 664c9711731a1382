"""A network that was converted from another layout: its transposes move to where they cost least.

Converters write one before each convolution and one after it. `optimize_layouts` runs before
partitioning, on Relay and on Relax; what is between the transposes is fused then.
"""

import numpy as np

import selfbyoc
from selfbyoc import emit, op

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
LAYERS = 4


def layer(x, weight, bias):
    """NHWC outside, NCHW inside."""
    y = op.conv2d(op.transpose(x, axes=TO_NCHW), weight, padding=1)
    return op.relu(op.add(op.transpose(y, axes=TO_NHWC), bias))


def network(x, w0, b0, w1, b1, w2, b2, w3, b3):
    """Four layers."""
    x = layer(layer(x, w0, b0), w1, b1)
    return layer(layer(x, w2, b2), w3, b3)


def main():
    """The same network before and after, with what was gained."""
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 28, 28, 16)}
    for n in range(LAYERS):
        shapes |= {f"w{n}": (16, 16, 3, 3), f"b{n}": (16,)}
    arrays = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    x = arrays.pop("x")
    mod = emit(network, shapes, arrays)
    done = selfbyoc.optimize_layouts(mod)

    reports = [selfbyoc.report(selfbyoc.partition_for_tefuse(each)) for each in (mod, done)]
    print(*str(reports[1].layouts).split("; "), sep="\n")
    for name, report in zip(("before", "now"), reports, strict=True):
        print(f"  {name}: {report.counts}, left: {report.left}")
    (found,), (alone,) = selfbyoc.build(done)(x), selfbyoc.build(mod, composites=[])(x)
    scale = np.abs(alone).max()
    print(f"agrees with TVM alone: {np.allclose(found, alone, rtol=0, atol=1e-5 * scale)}")


if __name__ == "__main__":
    main()
