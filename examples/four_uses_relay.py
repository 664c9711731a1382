"""The four uses of TVM's RFC on task extraction, for users of Relay: two convolutions as one task.

1. TVM's fallback schedules. 2. Logs of TVM's own tuner. 3. Tasks of a model. 4. Records applied.
`relay.build` is TVM's, unmodified, and gets no further argument in any of them.
"""

import tempfile
from pathlib import Path

import numpy as np
import tvm
from tvm import autotvm, relay

import selfbyoc
from selfbyoc import Case, Composite, choose, op

SHAPES = {"x": (1, 3, 28, 28), "w1": (32, 3, 3, 3), "w2": (32, 32, 3, 3), "w3": (10, 32)}
TARGET = selfbyoc.host_target()


def pattern(x, w1, w2):
    """The RFC's program: two convolutions, each with its ReLU."""
    y = op.relu(op.conv2d(x, w1, padding=(1, 1)))
    return op.relu(op.conv2d(y, w2, padding=(1, 1)))


def schedule(sch, ops, target):
    """Tiles of rows in parallel, each with its own piece of the first convolution."""
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
    cases=(Case(x=(1, 3, 17, 19), w1=(8, 3, 3, 3), w2=(5, 8, 3, 3)),),
    why="the first convolution's result need not be a tensor of the model",
)


def network(x, w1, w2, w3):
    """The chain, and ops that no composite takes: they are TVM's."""
    pooled = op.global_avg_pool2d(pattern(x, w1, w2))
    return op.dense(op.reshape(pooled, shape=(1, 32)), w3)


def run(mod, arrays):
    """Plain relay.build and its executor."""
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=TARGET)
    executor = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.run(**arrays)
    return executor.get_output(0).numpy()


def log_of_autotvm(mod, path):
    """A log as AutoTVM's tuner writes it, here with its first configuration of each task."""
    tasks = autotvm.task.extract_from_program(mod, {}, TARGET)
    with path.open("w", encoding="utf-8") as log:
        for task in tasks:
            made = autotvm.MeasureInput(TARGET, task, task.config_space.get(0))
            result = autotvm.MeasureResult([1e-5], 0, 1.0, 0.0)
            log.write(autotvm.record.encode(made, result) + "\n")
    return [task.name for task in tasks]


def main():
    """All four on one model."""
    folder = Path(tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(s).astype("float32") for n, s in SHAPES.items()}
    mod = selfbyoc.emit(network, SHAPES)
    expected = run(mod, arrays)

    def agrees(found):
        return np.allclose(found, expected, rtol=1e-3, atol=1e-2)

    # 1. Fallback: the composite's own schedule for the chain, TOPI's for the rest.
    parted = selfbyoc.partition_for_tefuse(mod, target=TARGET, composites=[chain])
    print("fallback:", agrees(run(parted, arrays)))

    # 2. With a log of AutoTVM for the rest.
    print("tasks of AutoTVM:", log_of_autotvm(parted, folder / "autotvm.log"))
    with autotvm.apply_history_best(str(folder / "autotvm.log")):
        print("AutoTVM's log:", agrees(run(parted, arrays)))

    # 3. Tasks: the whole chain is one, which TVM's extraction takes apart.
    for task in selfbyoc.extract_tasks(parted, TARGET):
        print("our task:", *task.ops)
    selfbyoc.tune(parted, TARGET, trials=3, work_dir=folder / "records")

    # 4. Records, together with AutoTVM's log: both in one build.
    with selfbyoc.apply_records(folder / "records") as applied:
        tuned = selfbyoc.partition_for_tefuse(mod, target=TARGET, composites=[chain])
        with autotvm.apply_history_best(str(folder / "autotvm.log")):
            print("both:", agrees(run(tuned, arrays)))
    print(applied)


if __name__ == "__main__":
    main()
