"""Tuned, hand-written and default schedules, and TVM's own, in one build.

Each kernel takes the best that there is for it: what tuning found, else its composite's schedule,
else the default schedule. Ops that no composite takes are TVM's, tuned by TVM's tools or not.
"""

import tempfile

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, choose, emit, op

SHAPES = {
    "x": (1, 3, 28, 28), "w1": (16, 3, 3, 3), "w2": (16, 16, 3, 3), "w3": (24, 16), "w4": (10, 24),
}  # fmt: skip


def two_convolutions(x, w1, w2):
    """Two convolutions, each with its ReLU."""
    y = op.relu(op.conv2d(x, w1, padding=(1, 1)))
    return op.relu(op.conv2d(y, w2, padding=(1, 1)))


def tiles_of_rows(sch, ops, target):
    """How many rows a tile has is left open: what is best depends on the machine."""
    *outer, row, column = sch.get_loops(ops.relu_1.block)
    tiles, inner = sch.split(row, [None, choose("rows", (4, 7, 14), default=7)])
    sch.reorder(tiles, *outer, inner, column)
    for one in (ops.conv2d_1, ops.relu, ops.conv2d):
        for block in reversed(one.blocks):
            sch.compute_at(block, tiles)
    sch.parallel(tiles)
    sch.vectorize(column)


def one_row_a_thread(sch, ops, target):
    """A schedule that leaves nothing open."""
    _, column = sch.get_loops(ops.relu.block)
    sch.parallel(column)


chain = Composite(
    "conv_chain",
    two_convolutions,
    tiles_of_rows,
    cases=(Case(x=(1, 3, 17, 19), w1=(8, 3, 3, 3), w2=(5, 8, 3, 3)),),
    why="the first convolution's result need not be a tensor of the model",
)
hidden = Composite(
    "dense_relu",
    lambda x, w: op.relu(op.dense(x, w)),
    one_row_a_thread,
    cases=(Case(x=(3, 17), w=(5, 17)),),
    why="the product need not be a tensor of the model",
)
scores = Composite(
    "dense_softmax",
    lambda x, w: op.softmax(op.dense(x, w)),
    cases=(Case(x=(3, 17), w=(5, 17)),),
    why="the product need not be a tensor of the model",
)


def network(x, w1, w2, w3, w4):
    """One match of each composite, and a pool in between that is TVM's."""
    pooled = op.global_avg_pool2d(two_convolutions(x, w1, w2))
    y = op.relu(op.dense(op.reshape(pooled, shape=(1, 16)), w3))
    return op.softmax(op.dense(y, w4))


def main():
    """Tune the chain alone, then build everything."""
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(s).astype("float32") for n, s in SHAPES.items()}
    mod, target = emit(network, SHAPES), selfbyoc.host_target()
    (expected,) = selfbyoc.build(mod, composites=[])(**arrays)

    with tempfile.TemporaryDirectory() as records:
        selfbyoc.tune(mod, target, trials=3, work_dir=records, composites=[chain])
        with selfbyoc.apply_records(records):
            mixed = selfbyoc.partition_for_tefuse(
                mod, target=target, composites=[chain, hidden, scores]
            )
    report = selfbyoc.explain(mixed, target=target).report
    for match in report.matched:
        print(f"{match.composite}: {match.level}")
    print("TVM's own:", *report.left)
    (found,) = selfbyoc.build(mixed, target)(**arrays)
    print("agrees with TVM alone:", np.allclose(found, expected, rtol=1e-4, atol=1e-5))


if __name__ == "__main__":
    main()
