"""The RFC's "general task extraction mechanism": conv2d-relu-conv2d-relu as one task, tuned as one.

On Relay from the RFC's own text, which plain `relay.build` refuses; on Relax the same ops.
"""

import tempfile

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, choose, op
from selfbyoc.tvm import GENERATION, tvm

TEXT = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 3, 224, 224), float32], %weight1: Tensor[(32, 3, 3, 3), float32],
          %weight2: Tensor[(32, 32, 3, 3), float32]) {
  %3 = fn (%data1: Tensor[(1, 3, 224, 224), float32], %weight11: Tensor[(32, 3, 3, 3), float32],
           %weight21: Tensor[(32, 32, 3, 3), float32], Primitive=1) {
    %0 = nn.conv2d(%data1, %weight11, padding=[1, 1, 1, 1], kernel_size=[3, 3]);
    %1 = nn.relu(%0);
    %2 = nn.conv2d(%1, %weight21, padding=[1, 1, 1, 1], kernel_size=[3, 3]);
    nn.relu(%2)
  };
  %3(%data, %weight1, %weight2)
}"""
SHAPES = {"data": (1, 3, 224, 224), "weight1": (32, 3, 3, 3), "weight2": (32, 32, 3, 3)}


def pattern(data, weight1, weight2):
    """Two convolutions, each with its ReLU."""
    y = op.relu(op.conv2d(data, weight1, padding=(1, 1)))
    return op.relu(op.conv2d(y, weight2, padding=(1, 1)))


def schedule(sch, ops, target):
    """for tiles of rows, in parallel: their part of both convolutions; how many rows is searched"""
    *outer, row, column = sch.get_loops(ops.relu_1.block)
    tiles, inner = sch.split(row, [None, choose("rows", (4, 7, 14), default=7)])
    sch.reorder(tiles, *outer, inner, column)
    for one in (ops.conv2d_1, ops.relu, ops.conv2d):
        for block in reversed(one.blocks):
            sch.compute_at(block, tiles)
    sch.parallel(tiles)
    sch.vectorize(column)


chain = Composite(
    "conv_chain",
    pattern,
    schedule,
    cases=(Case(data=(1, 3, 17, 19), weight1=(8, 3, 3, 3), weight2=(5, 8, 3, 3)),),
    why="the first convolution's result need not be a tensor of the model",
)


def refusal(mod):
    """What TVM alone says to the RFC's module."""
    try:
        return tvm.relay.build(mod, target="llvm")
    except tvm.TVMError as err:
        return str(err)[str(err).index("Cannot apply") :].splitlines()[0]


def main():
    """Extract, tune, build with what was found, and compare with the built-in composite."""
    if GENERATION == "relay":
        mod = tvm.relay.fromtext(TEXT)
        print("relay.build:", refusal(mod))
    else:
        mod = selfbyoc.emit(pattern, SHAPES)
    parted = selfbyoc.partition_for_tefuse(mod, composites=[chain])
    (task,) = selfbyoc.extract_tasks(parted)
    print("one task:", task)
    folder = tempfile.mkdtemp()
    (outcome,) = selfbyoc.tune(parted, trials=3, work_dir=folder, cost_model="none").outcomes
    print("schedules tried:", outcome.trials)
    with selfbyoc.apply_records(folder) as applied:
        tuned = selfbyoc.build(parted)
    print(applied)
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(shape, np.float32) for shape in SHAPES.values()]
    (found,), (expected,) = tuned(*args), selfbyoc.build(mod)(*args)
    print("agrees with the built-in composite:", np.allclose(found, expected, 1e-3, 1e-3))


if __name__ == "__main__":
    main()
