"""A composite with a packed weight, of the tests' own: independent of the built-in ones."""

from selfbyoc import Composite, either, op
from selfbyoc.tvm import te, tir

BLOCK = 16


def pack_weight(weight):
    """[units, in] -> [units/16, in, 16], zeros after the last unit."""
    units, inner = (int(extent) for extent in weight.shape)

    def element(block, i, lane):
        unit = block * BLOCK + lane
        return tir.if_then_else(unit < units, weight(unit, i), tir.const(0, weight.dtype))

    return te.compute((-(-units // BLOCK), inner, BLOCK), element, name="packed")


def packed_dense(ins, call):
    """`dense` on a packed weight."""
    x, weight = ins
    k = te.reduce_axis((0, int(x.shape[-1])), name="k")

    def element(*i):
        return te.sum(x(*i[:-1], k) * weight(i[-1] // BLOCK, k, i[-1] % BLOCK), axis=k)

    return te.compute(call.outputs[0].shape, element, name=call.name)


def _pattern(x, weight, bias):
    y = op.dense(x, weight)
    y = either(op.bias_add(y, bias), y)
    return either(op.relu(y), y)


dense = Composite(
    "packed_dense", _pattern, compute={"dense": packed_dense}, pack={"weight": pack_weight}
)


# The composites of whole/relay/test_build_and_run.py and whole/relax/test_build_and_run.py.
conv_relu = Composite("conv_relu", lambda x, w, b: op.relu(op.bias_add(op.conv2d(x, w), b)))
fc = Composite(
    "fc",
    lambda x, w: op.relu(op.dense(x, w)),
    compute={"dense": packed_dense},
    pack={"w": pack_weight},
)


def _both(x, w):
    y = op.dense(x, w)
    return y, op.relu(y)


two_outputs = Composite("two_outputs", _both)
ROAD = [conv_relu, fc, two_outputs]
ROAD_COUNTS = {"conv_relu": 2, "fc": 1, "two_outputs": 1}
