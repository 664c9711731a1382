"""A composite with decisions, built with records of them."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.codegen.records.record import CHOSEN, Record
from selfbyoc.codegen.tuning_record import Tuned
from selfbyoc.errors import RecordWarning
from selfbyoc.ir.emit import emit
from selfbyoc.tuning.tasks import extract_tasks
from selfbyoc.tvm import te, tir

ARGS = {"x": ((30, 7), "float32"), "weight": ((12, 7), "float32")}


def program(x, weight):
    return op.relu(op.dense(x, weight))


def pack(weight):
    """Units in blocks, of a size that is left open."""
    units, k = (int(extent) for extent in weight.shape)
    block = selfbyoc.choose("block", (2, 4, 6), default=4)
    return te.compute(
        (units // block, k, block), lambda b, i, n: weight(b * block + n, i), "packed"
    )


def compute(x, weight):
    block, k = int(weight.shape[2]), te.reduce_axis((0, int(x.shape[1])), "k")
    dot = te.compute(
        (int(x.shape[0]), int(weight.shape[0]) * block),
        lambda i, u: te.sum(x(i, k) * weight(u // block, k, u % block), axis=k), "dot",
    )  # fmt: skip
    return te.compute(dot.shape, lambda i, u: tir.Max(tir.const(0, "float32"), dot(i, u)), "out")


def schedule(sch, ops, target):
    rows, *_ = sch.get_loops(ops.relu.block)
    sch.split(rows, [None, selfbyoc.choose("rows", (1, 5, 10), default=5)])


COMPOSITE = Composite("blocked_dense", program, schedule, compute=compute, pack={"weight": pack})


def model(rng, rows=30):
    x, weight = ((rows, 7), "float32"), ARGS["weight"]
    params = {"weight": rng.standard_normal(weight[0]).astype("float32")}
    return emit(program, {"x": x, "weight": weight}), params


def task_of(mod, params):
    done = selfbyoc.partition_for_tefuse(
        mod, params, selfbyoc.host_target(), composites=[COMPOSITE]
    )
    (task,) = extract_tasks(done)
    return task


def record_of(task, decisions, **changed):
    facts = {
        "workload": task.key, "composite": task.composite.name, "about": str(task),
        "place": task.place, "status": CHOSEN, "decisions": decisions, "seconds": 1e-6,
        "default_seconds": 2e-6, "made_by": {"selfbyoc": "0.1.0"},
    }  # fmt: skip
    if "code" not in changed:
        facts["code"] = task.variant(Tuned(decisions)).code
    return Record(**{**facts, **changed})


BEST = {"block": 6, "rows": 10}


def built(mod, params, **options):
    options = {"composites": [COMPOSITE], "cache": False, **options}
    return selfbyoc.build(mod, params=params, **options)


def is_right(library, params, x):
    expected = np.maximum(x @ params["weight"].T, 0)
    np.testing.assert_allclose(library(x)[0], expected, rtol=1e-5, atol=1e-6)
    return True


def built_with_warning(places, mod, params, **options):
    with pytest.warns(RecordWarning) as caught, selfbyoc.apply_records(*places) as applied:
        library = built(mod, params, **options)
    return library, applied, [str(w.message) for w in caught]
