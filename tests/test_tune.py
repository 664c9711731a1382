"""`tune`: the default is kept where it is best, and nothing wrong, crashing or hanging gets in."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, choose, op
from selfbyoc._tvm import te, tir
from selfbyoc.ir.emit import emit
from selfbyoc.tuning import records, run, sources
from selfbyoc.tuning.records import CHOSEN, FAILED, MEASURED, WRONG

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


def faulty(ins, call):
    """A dense that may be told to be wrong in each way."""
    x, w = ins
    fault = choose("fault", ("none", "wrong", "crash", "hang", "raise"), default="none")
    if fault == "raise":
        raise ZeroDivisionError("no such tiles")
    k = te.reduce_axis((0, N), "k")
    row = 1 << 24 if fault == "crash" else 0  # reads 4 GiB behind its input
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
    Composite("slower", lambda x, w: op.relu(op.dense(x, w)), lanes(default=1)),
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
        patch.setattr(run, "TIMED", 0.01)
        patch.setattr(run, "LEAST", 2.0)
        patch.setattr(sources, "POPULATION", 40)
        yield


@pytest.fixture(scope="module")
def tuned(quick, tmp_path_factory):
    """One run over all of them; -> its result, its folder, and what it told meanwhile."""
    folder, told = tmp_path_factory.mktemp("tuned"), []
    result = selfbyoc.tune(
        emit(program, ARGS), None, 6, folder, params=weights(), composites=COMPOSITES,
        cost_model="none", progress=told.append,
    )  # fmt: skip
    return result, folder, told


def of(tuned, name):
    (outcome,) = (o for o in tuned[0].outcomes if o.task.composite.name == name)
    return outcome, [r for r in records.read(tuned[1]) if r.composite == name]


def test_a_slower_default_is_replaced(tuned):
    outcome, found = of(tuned, "slower")
    assert [(r.status, dict(r.decisions)) for r in found] == [
        (MEASURED, {}), (MEASURED, {"lanes": 16}), (CHOSEN, {"lanes": 16})
    ]  # fmt: skip
    assert outcome.record == found[-1]
    assert outcome.speedup > 1.2
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
    assert outcome.trials == 6
    traces = [r.trace for r in found if r.status == MEASURED]
    assert sum(t is not None for t in traces) == 5


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
        emit(program, ARGS), None, 6, folder, params=weights(), composites=COMPOSITES,
        cost_model="none",
    )  # fmt: skip
    assert [o.record for o in again.outcomes] == [o.record for o in tuned[0].outcomes]
    added = records.read(folder)[len(before) :]
    assert {r.code for r in added} == {""}, "only what a schedule refuses is asked again"
