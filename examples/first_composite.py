"""A dense layer with bias and ReLU as one kernel, with its own weight layout and schedule.

Runs unchanged on Relay and on Relax.
"""

import numpy as np
from tvm import te

import selfbyoc
from selfbyoc import Case, Composite, emit, op, require

ROWS, COLUMNS = 8, 16  # a tile of the result: 8 accumulators of 16 floats, one AVX-512 vector each


def pattern(x, weight, bias):
    """What is matched, written as what it computes."""
    return op.relu(op.bias_add(op.dense(x, weight), bias))


def check(match):
    """The schedule below has no tail; what it cannot do stays with the others."""
    require(match.x.ndim == 2, f"x must be a matrix, found {match.x.type}")
    units = match.weight.shape[0]
    require(units % COLUMNS == 0, f"{units} units are no multiple of {COLUMNS}")
    require(match.x.shape[0] % ROWS == 0, f"{match.x.shape[0]} rows are no multiple of {ROWS}")


def transposed(weight):
    """[units, in] -> [in, units], once, when building: a vector of units is contiguous."""
    units, k = weight.shape
    return te.compute((k, units), lambda i, u: weight(u, i), name="weight_t")


def dense(ins, call):
    """`dense` on the transposed weight."""
    x, weight = ins
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        call.outputs[0].shape, lambda i, u: te.sum(x(i, k) * weight(k, u), axis=k), name=call.name
    )


def schedule(sch, ops, target):
    """for tile in parallel:  acc[8, 16] = sum over k in registers;  out = relu(acc + bias)"""
    # 1. The bias joins the ReLU, which then is all of the epilogue.
    sch.compute_inline(ops.bias_add.block)
    # 2. The epilogue's loops are cut into tiles, which run in parallel.
    i, j = sch.get_loops(ops.relu.block)
    i_outer, i_inner = sch.split(i, [None, ROWS])
    j_outer, j_inner = sch.split(j, [None, COLUMNS])
    sch.reorder(i_outer, j_outer, i_inner, j_inner)
    sch.parallel(sch.fuse(i_outer, j_outer))
    sch.unroll(i_inner)
    sch.vectorize(j_inner)
    # 3. The products move under the tile: they stay in registers until the epilogue reads them.
    tile, _, _ = sch.get_loops(ops.relu.block)
    sch.compute_at(ops.dense.block, tile, preserve_unit_loops=True)
    sch.set_scope(ops.dense.block, 0, "local")
    _, i_inner, j_inner, k = sch.get_loops(ops.dense.block)
    sch.reorder(k, i_inner, j_inner)
    sch.unroll(i_inner)
    sch.vectorize(j_inner)
    # 4. Last, for nothing can be moved after it: the accumulators are set to zero before the sum.
    start = sch.decompose_reduction(ops.dense.block, k)
    _, i_inner, j_inner = sch.get_loops(start)
    sch.unroll(i_inner)
    sch.vectorize(j_inner)


def reference(x, weight, bias):
    """NumPy, independent of TVM."""
    return np.maximum(x @ weight.T + bias, 0)


dense_bias_relu = Composite(
    "dense_bias_relu",
    pattern,
    schedule,
    reference,
    check=check,
    compute={"dense": dense},
    pack={"weight": transposed},
    cases=(
        Case(x=(24, 37), weight=(48, 37), bias=(48,), constants=("weight", "bias")),
        Case(x=(8, 1), weight=(16, 1), bias=(16,), constants=("weight", "bias")),
    ),
    why="the result leaves the registers only when it is finished",
)


def main():
    """Two layers: the first fits the composite, the second has units that it refuses."""
    rng = np.random.default_rng(0)
    w1, b1 = rng.standard_normal((256, 128), np.float32), rng.standard_normal(256, np.float32)
    w2, b2 = rng.standard_normal((10, 256), np.float32), rng.standard_normal(10, np.float32)
    weights = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}

    def network(x, w1, b1, w2, b2):
        return pattern(pattern(x, w1, b1), w2, b2)

    mod = emit(network, {"x": ((64, 128), "float32")}, weights)
    mod = selfbyoc.partition_for_tefuse(mod, composites=[dense_bias_relu])
    print(selfbyoc.report(mod))

    x = rng.standard_normal((64, 128), np.float32)
    (found,) = selfbyoc.build(mod)(x)
    expected = reference(reference(x, w1, b1), w2, b2)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"agrees with NumPy: {error < 1e-5}")


if __name__ == "__main__":
    main()
