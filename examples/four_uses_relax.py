"""The four uses of TVM's RFC on task extraction, for users of Relax: two convolutions as one task.

1. Fallback schedules. 2. The database of TVM's own tuner. 3. Tasks of a model. 4. Records applied.
`tvm.compile` is TVM's, unmodified, and gets no further argument in any of them.
"""

import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import tvm
from tvm import relax
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms

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


REST = [relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(), relax.transform.FuseTIR()]  # fmt: skip


def lowered(mod):
    """Our kernels by RunCodegen; the rest as TVM fuses it."""
    with TARGET:
        return tvm.transform.Sequential([relax.transform.RunCodegen(), *REST])(mod)


def run(mod, arrays, database=None):
    """Plain tvm.compile and its virtual machine."""
    with TARGET, database or nullcontext(), tvm.transform.PassContext(opt_level=3):
        mod = lowered(mod)
        if database is not None:
            mod = relax.transform.MetaScheduleApplyDatabase()(mod)
        executable = tvm.compile(mod, TARGET)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    return machine["main"](*map(tvm.runtime.tensor, arrays.values())).numpy()


def database_of(tasks):
    """What MetaSchedule's tuner leaves, here with a schedule of each task that was not searched."""
    database = ms.database.MemoryDatabase()
    for task in tasks:
        mod = task.dispatched[0]
        sch = Schedule(mod)
        for block in sch.get_child_blocks(sch.get_sblock("root")):
            sch.parallel(sch.get_loops(block)[0])
        workload, args = database.commit_workload(mod), ms.arg_info.ArgInfo.from_entry_func(mod)
        record = ms.database.TuningRecord(sch.trace, workload, [1e-5], TARGET, args)
        database.commit_tuning_record(record)
    return database


def main():
    """All four on one model."""
    folder = Path(tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(s).astype("float32") for n, s in SHAPES.items()}
    mod = selfbyoc.emit(network, SHAPES)
    expected = run(mod, arrays)

    def agrees(found):
        return np.allclose(found, expected, rtol=1e-3, atol=1e-2)

    # 1. Fallback: the composite's own schedule for the chain, plain loops for the rest.
    parted = selfbyoc.partition_for_tefuse(mod, target=TARGET, composites=[chain])
    print("fallback:", agrees(run(parted, arrays)))

    # 2. With a database of MetaSchedule for the rest.
    theirs = ms.relax_integration.extract_tasks(lowered(parted), TARGET)
    print("tasks of MetaSchedule:", sorted(task.task_name for task in theirs))
    database = database_of(theirs)
    print("MetaSchedule's database:", agrees(run(parted, arrays, database)))

    # 3. Tasks: the whole chain is one.
    for task in selfbyoc.extract_tasks(parted, TARGET):
        print("our task:", *task.ops)
    selfbyoc.tune(parted, TARGET, trials=3, work_dir=folder / "records")

    # 4. Records, together with MetaSchedule's database: both in one build.
    with selfbyoc.apply_records(folder / "records") as applied:
        tuned = selfbyoc.partition_for_tefuse(mod, target=TARGET, composites=[chain])
        print("both:", agrees(run(tuned, arrays, database)))
    print(applied)


if __name__ == "__main__":
    main()
