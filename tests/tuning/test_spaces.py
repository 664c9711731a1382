"""`tune` on what its spaces make of a kernel: plain ops, weights in memory, scalars."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.codegen.records import record as records
from selfbyoc.codegen.records.record import CHOSEN, FAILED, MEASURED, WRONG
from selfbyoc.errors import RecordWarning
from selfbyoc.ir.emit import emit
from selfbyoc.tuning import engine, rounding, run, sources, weights
from selfbyoc.tuning.tasks import extract_tasks
from selfbyoc.tvm import te, tir

ROWS, K, UNITS = 21, 16, 12  # rows in a tail
ARGS = {"x": ((ROWS, K), "float32"), "w": ((UNITS, K), "float32"), "s": ((), "float32")}


def program(x, w, s):
    return op.multiply(op.dense(x, w), s)


def blocked(weight):
    block = selfbyoc.choose("block", (2, 4, 6), default=4)
    shape = (UNITS // block, K, block)
    return te.compute(shape, lambda b, i, n: weight(b * block + n, i), "packed")


def compute(x, w, s):
    block, k = int(w.shape[2]), te.reduce_axis((0, K), "k")
    dot = te.compute(
        (ROWS, UNITS), lambda i, u: te.sum(x(i, k) * w(u // block, k, u % block), axis=k), "dot"
    )
    return te.compute((ROWS, UNITS), lambda i, u: dot(i, u) * s(), "scaled")


SCALED = Composite(
    "scaled_dense", program, lambda sch, ops, target: None, compute=compute, pack={"w": blocked}
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(engine, "BUILDERS", 1)
    monkeypatch.setattr(run, "TIMED", 0.01)
    monkeypatch.setattr(sources, "POPULATION", 20)


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    return emit(program, ARGS), {"w": rng.standard_normal((UNITS, K)).astype("float32")}


def tuned(model, folder, trials, **options):
    mod, params = model
    options = {"params": params, "composites": [SCALED], "cost_model": "none", **options}
    (outcome,) = selfbyoc.tune(mod, None, trials, folder, **options).outcomes
    return outcome, records.read(folder)


def test_scalar_parameters(model, tmp_path):
    """NumPy makes an array of one axis of what has none, where it is asked for a contiguous one."""
    outcome, found = tuned(model, tmp_path, 3)
    assert (outcome.failed, outcome.wrong, outcome.trials) == (0, 0, 3)
    assert [r.status for r in found] == [MEASURED] * 3 + [CHOSEN]
    assert {r.made_by["selfbyoc"] for r in found} == {selfbyoc.__version__}


def test_metaschedules_space_is_that_of_the_plain_ops(model, tmp_path):
    """A compute and a packing were written for the composite's schedule, not for other rules."""
    _, found = tuned(model, tmp_path, 4, space="metaschedule")
    traced = [r for r in found if r.trace is not None and r.status == MEASURED]
    assert traced
    mod, params = model
    best = replace(traced[-1], status=CHOSEN)
    records.append(tmp_path / "traced", best)
    with selfbyoc.apply_records(tmp_path / "traced") as applied:
        done = selfbyoc.partition_for_tefuse(
            mod, params, selfbyoc.host_target(), composites=[SCALED]
        )
        library = selfbyoc.build(done, cache=False)
    assert len(applied.used) == 1
    (match,) = selfbyoc.explain(done).report.matched
    assert match.level == "tuned record"
    (task,) = extract_tasks(done)
    assert "tefuse.packed" not in task.source.attrs
    x = np.random.default_rng(1).standard_normal((ROWS, K)).astype("float32")
    given = {"x": x, "s": np.asarray(3, "float32")}
    expected = 3 * x @ params["w"].T
    np.testing.assert_allclose(library(**given)[0], expected, rtol=1e-5, atol=1e-5)
    packed = selfbyoc.partition_for_tefuse(mod, params, selfbyoc.host_target(), composites=[SCALED])
    with (
        pytest.warns(RecordWarning, match="the weights are packed already"),
        selfbyoc.apply_records(tmp_path / "traced"),
    ):
        selfbyoc.build(packed, cache=False)


def test_a_default_that_could_not_be_measured_is_measured_again(model, tmp_path):
    _, found = tuned(model, tmp_path / "first", 1)
    failed = replace(found[0], status=FAILED, seconds=None, default_seconds=None, error="no memory")
    records.append(tmp_path / "again", failed)
    outcome, found = tuned(model, tmp_path / "again", 1)
    assert [r.status for r in found] == [FAILED, MEASURED, CHOSEN]
    assert "no memory" not in outcome.error
    assert outcome.record == found[-1]


def branches(x, w, v):
    return op.concatenate([op.relu(op.dense(x, w)), op.relu(op.dense(x, v))], axis=1)


def test_metaschedules_space_of_what_reads_several_sums(tmp_path, caplog):
    """Its rule for tiles joins a sum with its reader, and raises where that reads others too."""
    mod = emit(branches, {"x": ARGS["x"], "w": ARGS["w"], "v": ARGS["w"]})
    composite = Composite("branches", branches)
    outcome, found = tuned((mod, None), tmp_path, 3, composites=[composite])
    assert (outcome.trials, outcome.failed, outcome.wrong) == (3, 0, 0)
    assert [r.status for r in found] == [MEASURED] * 3 + [CHOSEN]
    assert all(r.trace is not None for r in found[1:3])
    assert "branches: MetaSchedule's rules raise" in caplog.text


def off_by(x, w, s):
    off, k = selfbyoc.choose("off", (0, 1), default=0), te.reduce_axis((0, K), "k")
    dot = te.compute((ROWS, UNITS), lambda i, u: te.sum(x(i, k) * w(u, k), axis=k), "dot")
    scaled = te.compute((ROWS, UNITS), lambda i, u: dot(i, u) * s(), "scaled")
    return te.compute((ROWS, UNITS), lambda i, u: scaled(i, u) + tir.const(off, "float32"), "o")


def test_what_numpy_cannot_judge_is_wrong_if_it_differs(model, tmp_path, monkeypatch):
    """Nothing wins unchecked: ops without a NumPy meaning allow no roundoff beyond the table's."""
    unknown = SimpleNamespace(values=None, why_not="no NumPy meaning")
    monkeypatch.setattr(rounding, "question", lambda *_: unknown)
    composite = Composite("off_by", program, lambda sch, ops, target: None, compute=off_by)
    outcome, found = tuned(model, tmp_path, 2, composites=[composite])
    assert [r.status for r in found] == [MEASURED, WRONG, CHOSEN]
    assert (outcome.wrong, found[-1].is_default) == (1, True)


def test_weights_that_come_from_memory(model, tmp_path, monkeypatch):
    """Copies of the weights, so many that the last cache does not hold them."""
    mod, params = model
    done = selfbyoc.partition_for_tefuse(mod, params, selfbyoc.host_target(), composites=[SCALED])
    (task,) = extract_tasks(done)
    size = 4 * UNITS * K
    assert weights.weight_bytes(task) == size
    monkeypatch.setattr(weights, "_last_cache", lambda: 10 * size)
    assert (weights.from_memory([task]), weights.copies(task)) == (False, 11)
    monkeypatch.setattr(weights, "_last_cache", lambda: size)
    assert (weights.from_memory([task]), weights.copies(task)) == (True, 2)
    jobs = []
    before = run.replace
    monkeypatch.setattr(run, "replace", lambda job, **new: jobs.append(new) or before(job, **new))
    outcome, _ = tuned(model, tmp_path, 2)
    assert {job["copies"] for job in jobs if "copies" in job} == {2}
    (at,) = {job["weights"] for job in jobs if "weights" in job}
    assert [task.source.graph.inputs[i].shape for i in at] == [(UNITS, K)]
    assert (outcome.failed, outcome.wrong, outcome.trials) == (0, 0, 2)
