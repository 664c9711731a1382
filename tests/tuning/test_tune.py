"""`tune`: the default is kept where it is best, and nothing wrong, crashing or hanging gets in."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, choose, op
from selfbyoc.codegen.records import record as records
from selfbyoc.codegen.records.record import CHOSEN, FAILED, MEASURED, WRONG
from selfbyoc.errors import InputError, MissingExtra, TuningError
from selfbyoc.ir.emit import emit
from selfbyoc.tuning import engine, run, sources
from selfbyoc.tvm import te, tir
from selfbyoc.tvm.tune import meta_schedule, xgboost_model

ROWS, N = 37, 64  # rows in a tail


def lanes(default):
    """Scalar, or vectors of 16 columns: several times as fast."""

    def schedule(sch, ops, target):
        i, j, k = sch.get_loops(ops.dense.block)
        taken = choose("lanes", (1, 16), default=default)
        if taken > 1:
            outer, inner = sch.split(j, [None, taken])
            sch.reorder(i, outer, k, inner)
            sch.vectorize(inner)
        sch.decompose_reduction(ops.dense.block, k)

    return schedule


def pausing(ins, call):
    """A dense whose default waits at each row: longer than any noise of a busy machine."""
    x, w = ins
    pause, k = choose("pause", (20, 0), default=20), te.reduce_axis((0, N), "k")
    dot = te.compute((ROWS, N), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="products")
    if not pause:
        return dot
    waited = tir.call_extern("int32", "usleep", pause).astype("float32")  # of microseconds; gives 0
    zero = tir.const(0, "float32")
    return te.compute((ROWS, N), lambda i, j: dot(i, j) + tir.if_then_else(j == 0, waited, zero))


def faulty(ins, call):
    """A dense that may be told to be wrong in each way."""
    x, w = ins
    fault = choose("fault", ("none", "wrong", "crash", "hang", "raise"), default="none")
    if fault == "raise":
        raise ZeroDivisionError("no such tiles")
    k = te.reduce_axis((0, N), "k")
    row = -(1 << 24) if fault == "crash" else 0  # reads 4 GiB before its input
    factor = tir.const(1.01 if fault == "wrong" else 1, "float32")

    def element(i, j):
        value = x[i + row, k] * w[j, k] * factor
        if fault == "hang":
            value += tir.call_extern("int32", "sleep", 1000).astype("float32")
        return te.sum(value, axis=k)

    return te.compute((ROWS, N), element, name="products")


def blocked(weight):
    """Units in blocks, of a size that is left open."""
    block = choose("block", (2, 16, 32), default=2)
    return te.compute((N // block, N, block), lambda b, i, n: weight(b * block + n, i), "packed")


def packed_dense(ins, call):
    x, weight = ins
    block, k = int(weight.shape[2]), te.reduce_axis((0, N), "k")
    return te.compute(
        (ROWS, N),
        lambda i, u: te.sum(x(i, k) * weight(u // block, k, u % block), axis=k),
        name="products",
    )


def nothing(sch, ops, target):
    pass


COMPOSITES = [
    Composite(
        "slower", lambda x, w: op.relu(op.dense(x, w)), nothing, compute={"dense": pausing}
    ),
    Composite("best", lambda x, w: op.sigmoid(op.dense(x, w)), lanes(default=16)),
    Composite(
        "faulty", lambda x, w: op.negative(op.dense(x, w)), nothing, compute={"dense": faulty}
    ),
    Composite(
        "packed", lambda x, w: op.abs(op.dense(x, w)), nothing,
        compute={"dense": packed_dense}, pack={"w": blocked},
    ),
    Composite("plain", lambda x, w: op.exp(op.dense(x, w))),
]  # fmt: skip
ARGS = {"x": ((ROWS, N), "float32")} | {f"w{i}": ((N, N), "float32") for i in range(5)}


def program(x, w0, w1, w2, w3, w4):
    x = op.sigmoid(op.dense(op.relu(op.dense(x, w0)), w1))
    x = op.abs(op.dense(op.negative(op.dense(x, w2)), w3))
    return op.exp(op.dense(x, w4))


def weights():
    rng = np.random.default_rng(0)
    return {n: rng.standard_normal(s).astype(d) / 64 for n, (s, d) in ARGS.items() if n != "x"}


@pytest.fixture(scope="module")
def quick():
    """Short timing and limits: what is told apart here differs by far."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "BUILDERS", 1)
        patch.setattr(run, "TIMED", 0.01)
        patch.setattr(run, "LEAST", 2.0)
        patch.setattr(sources, "POPULATION", 40)
        yield


@pytest.fixture(scope="module")
def tuned(quick, tmp_path_factory):
    """One run over all of them; -> its result, its folder, and what it told meanwhile."""
    folder, told = tmp_path_factory.mktemp("tuned"), []
    result = selfbyoc.tune(
        emit(program, ARGS), None, 4, folder, params=weights(), composites=COMPOSITES,
        cost_model="none", progress=told.append,
    )  # fmt: skip
    return result, folder, told


def of(tuned, name):
    (outcome,) = (o for o in tuned[0].outcomes if o.task.composite.name == name)
    return outcome, [r for r in records.read(tuned[1]) if r.composite == name]


def test_a_slower_default_is_replaced(tuned):
    outcome, found = of(tuned, "slower")
    assert [(r.status, dict(r.decisions)) for r in found] == [
        (MEASURED, {}), (MEASURED, {"pause": 0}), (CHOSEN, {"pause": 0})
    ]  # fmt: skip
    assert outcome.record == found[-1]
    assert outcome.speedup > 2
    assert outcome.best_seconds < outcome.default_seconds


def test_the_best_default_is_kept(tuned):
    outcome, found = of(tuned, "best")
    assert found[0].is_default
    assert {r.status for r in found} == {MEASURED, CHOSEN}
    assert outcome.record.is_default
    assert outcome.speedup == 1.0


def test_wrong_crashing_and_hanging_candidates_are_out(tuned):
    outcome, found = of(tuned, "faulty")
    by_fault = {r.decisions.get("fault", "none"): r for r in found if r.status != CHOSEN}
    assert by_fault["none"].status == MEASURED
    assert (by_fault["wrong"].status, by_fault["wrong"].seconds) == (WRONG, None)
    assert "output 0: 2" in by_fault["wrong"].error
    assert {by_fault[f].status for f in ("crash", "hang", "raise")} == {FAILED}
    assert "SIGSEGV" in by_fault["crash"].error
    assert "did not end within" in by_fault["hang"].error
    assert "ZeroDivisionError: no such tiles" in by_fault["raise"].error
    # What its schedule refuses was not tried.
    assert (outcome.trials, outcome.failed, outcome.wrong) == (4, 3, 1)
    assert outcome.record.is_default


def test_weights_are_packed_as_each_candidate_wants_them(tuned):
    _, found = of(tuned, "packed")
    assert {r.decisions.get("block", 2) for r in found if r.status == MEASURED} == {2, 16, 32}


def test_metaschedule_where_there_is_no_schedule(tuned):
    outcome, found = of(tuned, "plain")
    assert found[0].is_default
    assert outcome.trials == 4
    traces = [r.trace for r in found if r.status == MEASURED]
    assert sum(t is not None for t in traces) == 3


def test_what_is_found_is_built_and_right(tuned):  # C4, C24: searched and hand-written in one
    with selfbyoc.apply_records(tuned[1]) as applied:
        library = selfbyoc.build(
            emit(program, ARGS), params=weights(), composites=COMPOSITES, cache=False
        )
    assert len(applied.used) == 5
    assert library.report.counts == {c.name: 1 for c in COMPOSITES}
    x = np.random.default_rng(1).standard_normal((ROWS, N)).astype("float32")
    w = [a.astype(np.float64) for a in weights().values()]
    y = 1 / (1 + np.exp(-(np.maximum(x @ w[0].T, 0) @ w[1].T)))
    expected = np.exp(np.abs(-(y @ w[2].T) @ w[3].T) @ w[4].T)
    np.testing.assert_allclose(library(x)[0], expected, rtol=1e-5)


def test_progress(tuned):
    result, _, told = tuned
    assert [p.trials_done for p in told] == sorted(p.trials_done for p in told)
    last = told[-1]
    assert (last.tasks, last.tasks_done) == (5, 5)
    assert last.trials_done == last.trials == sum(o.trials for o in result.outcomes)
    assert last.remaining == 0
    assert any(p.best_seconds < p.default_seconds for p in told if p.best_seconds)
    text = str(result)
    assert "of no use" in text
    assert len(text.splitlines()) == 6


def test_a_second_run_measures_nothing_again(tuned):
    _, folder, _ = tuned
    before = records.read(folder)
    again = selfbyoc.tune(
        emit(program, ARGS), None, 4, folder, params=weights(), composites=COMPOSITES,
        cost_model="none",
    )  # fmt: skip
    assert [o.record for o in again.outcomes] == [o.record for o in tuned[0].outcomes]
    added = records.read(folder)[len(before) :]
    assert [(r.composite, r.status, dict(r.decisions), r.error) for r in added if r.code] == []


def rows(sch, ops, target):
    """More decisions than any test tries."""
    i, j, _ = sch.get_loops(ops.dense.block)
    sch.split(i, [None, choose("rows", range(1, 30), default=1)])
    sch.split(j, [None, choose("columns", range(1, 60), default=1)])


WIDE = Composite("wide", lambda x, w: op.relu(op.dense(x, w)), rows)
SHAPES = {"x": ((ROWS, N), "float32"), "w": ((N, N), "float32")}


def tune_wide(folder, trials, **options):
    mod = emit(WIDE.pattern, SHAPES)
    (outcome,) = selfbyoc.tune(
        mod, None, trials, folder, composites=[WIDE], **{"cost_model": "none", **options}
    ).outcomes
    return outcome


def test_killed_and_resumed(quick, tmp_path):
    """A run that is killed while it measures loses nothing that it wrote."""
    script = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import test_tune
        print("ready", flush=True)
        test_tune.tune_wide(sys.argv[1], 10**6)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        until = time.monotonic() + 300
        while not (tmp_path / records.FILE).exists() or len(records.read(tmp_path)) < 3:
            assert time.monotonic() < until, "nothing was measured"
            time.sleep(0.05)
    finally:
        started.send_signal(signal.SIGKILL)
        started.communicate()
    before = (tmp_path / records.FILE).read_text(encoding="utf-8")
    known = records.read(tmp_path)

    told = []
    outcome = tune_wide(tmp_path, len(known) + 2, progress=told.append)
    assert (tmp_path / records.FILE).read_text(encoding="utf-8").startswith(before)
    assert told[0].trials_done == len(known) + 1
    tried = [r for r in records.read(tmp_path) if r.status != CHOSEN]
    assert len({r.code for r in tried}) == len(tried) == outcome.trials == len(known) + 2
    assert outcome.record is not None

    again = tune_wide(tmp_path, len(known) + 2)  # nothing is left to do
    assert again.record == outcome.record


def test_stopped_from_outside(quick, tmp_path):
    """What a callback raises ends the run, after what was measured is written down."""

    def stop(progress):
        if progress.trials_done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune_wide(tmp_path, 20, progress=stop)
    assert [r.status for r in records.read(tmp_path)] == [MEASURED] * 3


class Model:
    """A cost model that likes many rows, and notes what it is asked."""

    def __init__(self):
        self.asked, self.learned = [], 0

    def predict(self, context, candidates):
        self.asked.append(len(candidates))
        return [float(str(c.sch.mod["main"]).count("\n")) for c in candidates]

    def update(self, context, candidates, results):
        self.learned += sum(r.run_secs is not None for r in results)


def test_the_cost_model_chooses(quick, tmp_path):
    model = Model()
    outcome = tune_wide(tmp_path, 17, cost_model=model)
    assert model.asked == [24, 24], "three proposals for each candidate of a batch"
    assert model.learned == outcome.trials == 17


def test_a_cost_model_is_not_asked_about_nothing():
    """xgboost answers "NULL pointer access", after which it was left out for all other tasks."""
    model = Model()
    assert sources.CostModel(model).ranked(None, []) == []
    assert model.asked == []


def test_xgboost_learns_what_was_measured(quick, tmp_path, caplog):
    pytest.importorskip("xgboost")
    model = xgboost_model(num_warmup_samples=8, num_tuning_cores=1)
    outcome = tune_wide(tmp_path, 17, cost_model=model)
    assert (model.data_size, outcome.trials) == (17, 17)
    assert model.booster is not None
    assert not caplog.records, "it was not left out"


def test_a_budget_of_time(quick, tmp_path):
    """It may end in the middle of a batch; what was measured is learned and chosen from."""
    model = Model()
    outcome = tune_wide(tmp_path, 10**6, cost_model=model, seconds=30)
    assert 1 < model.learned == outcome.trials < 10**6
    assert outcome.record is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials: expected a number from 1 on, found 0"),
        ({"seconds": 0}, "seconds: expected a time above 0"),
        ({"space": "mine"}, "space: expected one of .*, found 'mine'"),
        ({"cost_model": "best"}, "cost_model: expected one of"),
    ],
)
def test_what_cannot_be_meant(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        tune_wide(tmp_path, **{"trials": 2, **options})


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(TuningError, match=r"work_dir: .* cannot be written"):
        tune_wide(tmp_path / "file" / "folder", 2)


def test_a_target_that_cannot_be_measured(tmp_path):
    with pytest.raises(TuningError, match="kernels for c are not run here"):
        selfbyoc.tune(emit(WIDE.pattern, SHAPES), "c", 2, tmp_path, composites=[WIDE])


def test_without_the_packages(tmp_path, monkeypatch):
    meta_schedule.cache_clear()
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(MissingExtra, match=r"pip install 'selfbyoc\[tune\]'"):
        tune_wide(tmp_path, 2)
