"""`build(verify=True)`: whatever is wrong goes down a level with a warning, and the result is
right.
"""

import time

import numpy as np
import pytest
from wrong_composites import COMPOSITES, SCHEDULES, K, M, N, dense_relu, pattern

import selfbyoc
from selfbyoc import Composite, host_target, op
from selfbyoc.analysis.verify.build import verified
from selfbyoc.codegen.apply import DEFAULT, OWN
from selfbyoc.errors import VerificationError, VerificationWarning
from selfbyoc.ir.emit import emit
from selfbyoc.partition.report import MATCHED, REFUSED

ARGS = {"x": ((M, K), "float32"), "w": ((N, K), "float32")}


def data():
    rng = np.random.default_rng(0)
    return (rng.standard_normal(s).astype("float32") for s, _ in ARGS.values())


def check(library, x, w):
    np.testing.assert_allclose(library(x)[0], np.maximum(x @ w.T, 0), rtol=1e-4, atol=1e-4)


def model(w):
    return emit(pattern, ARGS, {"w": w})


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_wrong_schedule_gives_way_to_the_default_one(name):
    schedule, kind, said = SCHEDULES[name]
    x, w = data()
    with pytest.warns(VerificationWarning, match="composite dense_relu at relu"):
        library = selfbyoc.build(model(w), composites=[dense_relu(schedule=schedule)], verify=True)
    check(library, x, w)
    (disabled,) = library.disabled
    assert (disabled.composite, disabled.roots, disabled.level) == ("dense_relu", ("relu",), OWN)
    assert disabled.check.kind == kind
    assert said in disabled.reason
    (verdict,) = library.verification.verdicts
    assert (verdict.level, verdict.status) == (DEFAULT, "passed")
    assert library.report.counts == {"dense_relu": 1}


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_wrong_composite_is_not_taken(name):
    options, said = COMPOSITES[name]
    x, w = data()
    with pytest.warns(VerificationWarning, match="instead: the next composite that matches"):
        library = selfbyoc.build(model(w), composites=[dense_relu(**options)], verify=True)
    check(library, x, w)
    assert said in str(library.disabled[-1])
    assert library.report.counts == {}
    (record,) = library.report.why_not("relu")
    assert record.status == REFUSED
    assert record.reason.startswith("verification found it wrong on the default schedule: ")
    assert library.verification.verdicts == ()


def test_explain_says_it():
    wrong, (_, w) = COMPOSITES["compute"][0], data()
    for options, status, cause in (
        ({"schedule": SCHEDULES["in the tail"][0]}, MATCHED, ""),
        (wrong, REFUSED, "verification"),
    ):
        with pytest.warns(VerificationWarning):
            found = verified(model(w), None, host_target(), [dense_relu(**options)])
        (record,) = selfbyoc.explain(found.mod, target=host_target()).records
        assert (record.status, record.cause) == (status, cause)
        said = record.reason if status == REFUSED else record.level_reason
        assert said.startswith("verification found it wrong on ")


def test_another_composite_takes_the_ops():
    x, w = data()
    wrong = dense_relu(**COMPOSITES["compute"][0], schedule=SCHEDULES["raises"][0])
    plain = Composite("plain_dense", lambda x, w: op.dense(x, w))
    with pytest.warns(VerificationWarning) as caught:
        library = selfbyoc.build(model(w), composites=[wrong, plain], verify=True)
    check(library, x, w)
    assert library.report.counts == {"plain_dense": 1}
    assert [d.level for d in library.disabled] == [OWN, DEFAULT]
    assert len(caught) == 2


def test_only_the_places_where_it_is_wrong():
    """One composite, two shapes; it is wrong on one of them."""

    def schedule(sch, ops, target):
        if ops.dense.outputs[0][0] == (M, N):
            SCHEDULES["in the tail"][0](sch, ops, target)

    def program(x, w, v):
        return pattern(pattern(x, w), v)

    args = {**ARGS, "v": ((7, N), "float32")}
    rng = np.random.default_rng(1)
    x, w, v = (rng.standard_normal(s).astype("float32") for s, _ in args.values())
    with pytest.warns(VerificationWarning):
        library = selfbyoc.build(
            emit(program, args, {"w": w, "v": v}),
            composites=[dense_relu(schedule=schedule)],
            verify=True,
        )
    expected = np.maximum(np.maximum(x @ w.T, 0) @ v.T, 0)
    np.testing.assert_allclose(library(x)[0], expected, rtol=1e-4, atol=1e-3)
    assert [d.roots for d in library.disabled] == [("relu",)]
    assert sorted(v.level for v in library.verification.verdicts) == [DEFAULT, OWN]


def test_nothing_is_wrong():
    x, w = data()
    library = selfbyoc.build(model(w), verify=True)
    check(library, x, w)
    assert library.disabled == ()
    assert library.verification.ok
    assert library.report.counts == {"dense": 1}


def test_without_verify_nothing_changes():
    x, w = data()
    library = selfbyoc.build(
        model(w), composites=[dense_relu(schedule=SCHEDULES["in the tail"][0])]
    )
    assert not np.allclose(library(x)[0], np.maximum(x @ w.T, 0), atol=1e-2)
    assert library.verification is None


def test_a_partitioned_module():
    x, w = data()
    wrong = dense_relu(schedule=SCHEDULES["in the tail"][0])
    parted = selfbyoc.partition_for_tefuse(model(w), composites=[wrong])
    with pytest.warns(VerificationWarning):
        check(selfbyoc.build(parted, verify=True), x, w)
    wrong = dense_relu(**COMPOSITES["compute"][0])
    parted = selfbyoc.partition_for_tefuse(model(w), composites=[wrong])
    with (
        pytest.warns(VerificationWarning),
        pytest.raises(VerificationError, match="hand build the unpartitioned module"),
    ):
        selfbyoc.build(parted, verify=True)


def test_a_target_that_does_not_run_here():
    """Built as without verify, and said so."""
    target = {"kind": "llvm", "mtriple": "aarch64-linux-gnu"}
    _, w = data()
    with pytest.warns(VerificationWarning, match="1 of 1 kernels are not verified: .*aarch64"):
        library = selfbyoc.build(model(w), target, verify=True)
    assert library.report.counts == {"dense": 1}


def test_a_hang_gives_way_to_the_default_schedule():
    def schedule(sch, ops, target):
        time.sleep(1000)

    x, w = data()
    with pytest.warns(VerificationWarning, match=r"build hung: it did not end within 2 s"):
        library = selfbyoc.build(
            model(w), composites=[dense_relu(schedule=schedule)], verify=True, verify_timeout=2
        )
    check(library, x, w)
    assert [d.level for d in library.disabled] == [OWN]
