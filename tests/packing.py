"""A composite with a packed weight, of the tests' own: independent of the built-in ones."""

from selfbyoc import Composite, either, op
from selfbyoc._tvm import te, tir

BLOCK = 16


def pack_weight(weight):
    """[units, in] -> [units/16, in, 16], zeros behind the last unit."""
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
