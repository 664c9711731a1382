"""Our records beside TVM's own switch for its tuner, in one relay.build."""

import numpy as np
import tvm
from tvm import meta_schedule as ms
from tvm import relay

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.codegen.records.record import CHOSEN, Record, append
from selfbyoc.codegen.tuning_record import Tuned
from selfbyoc.ir.emit import emit

SHAPES = {"x": (10, 24), "w": (12, 24), "v": (6, 12)}


def rows(sch, ops, target):
    row, _ = sch.get_loops(ops.relu.block)
    sch.split(row, [None, selfbyoc.choose("rows", (2, 5), 5)])


FUSED = Composite("dense_relu", lambda x, w: op.relu(op.dense(x, w)), rows)


def scheduled(sch):
    """A schedule for any function of one loop nest: what a database may hold for TVM's ops."""
    for block in sch.get_child_blocks(sch.get_block("root")):
        sch.parallel(sch.get_loops(block)[0])
    return scheduled.calls.append(sch) or True


scheduled.calls = []


def test_records_and_a_database_of_meta_schedule(tmp_path):  # C21, C24, C26
    mod = emit(lambda x, w, v: op.dense(op.relu(op.dense(x, w)), v), SHAPES)
    target = selfbyoc.host_target()
    parted = selfbyoc.partition_for_tefuse(mod, target=target, composites=[FUSED])
    (task,) = selfbyoc.extract_tasks(parted)
    told = {"rows": 2}
    code = task.variant(Tuned(told)).code
    facts = (task.key, "dense_relu", str(task), task.place, CHOSEN, told, None, code, 1e-6, 2e-6)
    append(tmp_path, Record(*facts))
    config = {"relay.backend.use_meta_schedule": True}
    database = ms.database.ScheduleFnDatabase(scheduled)
    with (
        selfbyoc.apply_records(tmp_path) as applied,
        database,
        tvm.transform.PassContext(opt_level=3, config=config),
    ):
        library = relay.build(parted, target)
    assert (len(applied.used), len(applied.unused)) == (1, 0)
    assert scheduled.calls  # the dense that no composite took is MetaSchedule's
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(s).astype("float32") for n, s in SHAPES.items()}
    executor = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**arrays)
    expected = np.maximum(arrays["x"] @ arrays["w"].T, 0) @ arrays["v"].T
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-4)
