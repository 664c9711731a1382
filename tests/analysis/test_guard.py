"""A guard leaves composites alone where they do not pay; the report says so, with both times."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Case, Composite, MeasuredGuard, Times, op
from selfbyoc.analysis import guard as module
from selfbyoc.analysis.guard import measured
from selfbyoc.errors import InputError
from selfbyoc.ir.emit import emit
from selfbyoc.partition.refusal import SLOWER
from selfbyoc.partition.report import REFUSED

FUSED = Composite("dense_relu", lambda x, w: op.relu(op.dense(x, w)))
PLAIN = Composite("plain_dense", lambda x, w: op.dense(x, w))
BOTH = [FUSED, PLAIN]


def program(x, w0, w1):
    return op.relu(op.dense(op.relu(op.dense(x, w0)), w1))


def weights():
    rng = np.random.default_rng(0)
    return {n: rng.standard_normal((33, 33)).astype("float32") for n in ("w0", "w1")}


def model():
    return emit(program, {"x": (5, 33), "w0": (33, 33), "w1": (33, 33)}, weights())


def clock(**times):
    """A measure that has looked at no clock; what it was asked is in `asked`."""

    def measure(trial):
        measure.asked.append(trial)
        return times.get(trial.composite.name, Times(1.0, 2.0))

    measure.asked = []
    return measure


def test_what_does_not_pay_is_left_out_and_reported():
    measure = clock(dense_relu=Times(0.2, 0.1, "plain_dense and TVM"))
    mod = selfbyoc.partition_for_tefuse(
        model(), composites=BOTH, guard=MeasuredGuard(measure=measure)
    )
    report = selfbyoc.report(mod)
    assert report.counts == {"plain_dense": 2}
    refused = [r for r in report.records if r.status == REFUSED]
    assert [(r.composite, r.root, r.cause) for r in refused] == [
        ("dense_relu", "relu", SLOWER), ("dense_relu", "relu_1", SLOWER),
    ]  # fmt: skip
    assert refused[0].found == "0.2000 ms"
    assert refused[0].wanted == "at most 1.05 x 0.1000 ms, which plain_dense and TVM takes"
    assert refused[0].reason.startswith("it takes 0.2000 ms; wanted at most 1.05 x 0.1000 ms")
    assert "refused dense_relu at relu and 1 more: it takes 0.2000 ms" in str(report)


def test_the_model_computes_the_same():
    x, w = np.random.default_rng(1).standard_normal((5, 33)).astype("float32"), weights()
    guard = MeasuredGuard(measure=clock(dense_relu=Times(2, 1)))
    library = selfbyoc.build(model(), composites=BOTH, guard=guard)
    assert library.report.counts == {"plain_dense": 2}
    expected = np.maximum(np.maximum(x @ w["w0"].T, 0) @ w["w1"].T, 0)
    np.testing.assert_allclose(library(x)[0], expected, rtol=1e-4, atol=1e-4)


def test_what_pays_stays():
    measure = clock(dense_relu=Times(1.04, 1.0))
    mod = selfbyoc.partition_for_tefuse(
        model(), composites=BOTH, guard=MeasuredGuard(measure=measure)
    )
    assert selfbyoc.report(mod).counts == {"dense_relu": 2}
    strict = MeasuredGuard(limit=1.0, measure=measure)
    mod = selfbyoc.partition_for_tefuse(model(), composites=BOTH, guard=strict)
    assert selfbyoc.report(mod).counts == {"plain_dense": 2}


def test_nothing_is_measured_without_a_guard():
    assert selfbyoc.report(selfbyoc.partition_for_tefuse(model(), composites=BOTH)).counts == {
        "dense_relu": 2
    }


def test_all_may_be_left_to_tvm():
    slow = clock(dense_relu=Times(2, 1), plain_dense=Times(2, 1))
    mod = selfbyoc.partition_for_tefuse(model(), composites=BOTH, guard=MeasuredGuard(measure=slow))
    assert selfbyoc.report(mod).counts == {}
    assert [t.composite for t in slow.asked] == [FUSED, FUSED, PLAIN, PLAIN]


@pytest.mark.parametrize(
    ("second", "counts", "kept"),
    [
        (Times(1.2, 2.0), {"dense_relu": 2}, Times(1.2, 1.5, "PLAIN")),
        (Times(3.0, 1.1), {"plain_dense": 2}, Times(2.0, 1.1, "PLAIN")),
    ],
)
def test_a_kernel_that_loses_is_measured_again(second, counts, kept):
    """A busy neighbour during the first measurement is no reason to leave it out."""
    found = {"dense_relu": [Times(2.0, 1.5, "PLAIN"), second], "plain_dense": [Times(1.0, 2.0)]}
    guard = MeasuredGuard(measure=lambda trial: found[trial.composite.name].pop(0))
    mod = selfbyoc.partition_for_tefuse(model(), composites=BOTH, guard=guard)
    assert selfbyoc.report(mod).counts == counts
    assert kept in guard.times.values()


def test_equal_kernels_are_measured_once_and_remembered():
    measure = clock()
    guard = MeasuredGuard(measure=measure)
    for _ in range(2):
        selfbyoc.partition_for_tefuse(model(), composites=BOTH, guard=guard)
    assert len(measure.asked) == 1
    assert list(guard.times.values()) == [Times(1.0, 2.0)]


def test_a_trial():
    """The first of two equal kernels, with its weights; the composite is not among the others."""
    measure = clock()
    selfbyoc.partition_for_tefuse(model(), composites=BOTH, guard=MeasuredGuard(measure=measure))
    (trial,) = measure.asked
    assert trial.composite is FUSED
    assert [c.name for c in trial.others] == ["plain_dense"]
    assert [a.shape for a in trial.inputs] == [(5, 33)]
    library = selfbyoc.build(trial.mod, trial.target, composites=[FUSED])
    assert library.report.counts == {"dense_relu": 1}
    (x,) = trial.inputs
    np.testing.assert_allclose(
        library(x)[0], np.maximum(x @ weights()["w0"].T, 0), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(("others", "served"), [(BOTH, "plain_dense and TVM"), ([FUSED], "TVM")])
def test_the_clock(others, served):
    """No time is asserted, only that both were measured."""
    measure = clock()
    selfbyoc.partition_for_tefuse(model(), composites=others, guard=MeasuredGuard(measure=measure))
    times = measured(measure.asked[0])
    assert times.kernel > 0
    assert times.instead > 0
    assert times.served_by == served


def test_with_verification():
    guard = MeasuredGuard(measure=clock(dense_relu=Times(2, 1)))
    library = selfbyoc.build(model(), composites=BOTH, guard=guard, verify=True)
    assert library.report.counts == {"plain_dense": 2}
    assert library.verification.ok


def test_wrong_use():
    parted = selfbyoc.partition_for_tefuse(model(), composites=BOTH)
    with pytest.raises(InputError, match="partitioned already"):
        selfbyoc.build(parted, guard=MeasuredGuard())
    with pytest.raises(InputError, match="limit: expected a factor above 0"):
        MeasuredGuard(limit=0)
    target = "llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic-rv64"
    with pytest.raises(InputError, match="nothing can be measured"):
        selfbyoc.partition_for_tefuse(model(), target=target, guard=MeasuredGuard())


def test_command(monkeypatch, tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    from models import onnx_model

    from selfbyoc.__main__ import main

    onnx.save(onnx_model(), tmp_path / "m.onnx")
    monkeypatch.setattr(module, "latency", lambda runs, *_: dict.fromkeys(runs, _Fixed()))
    assert main(["explain", str(tmp_path / "m.onnx"), "--guard", "--all"]) == 0
    assert "dense" in capsys.readouterr().out


class _Fixed:
    milliseconds = 1.0


def test_a_case_of_a_builtin():
    """Packed weights are measured packed."""
    dense = next(c for c in selfbyoc.BUILTIN if c.name == "dense")
    case = Case(lambda x, w: op.dense(x, w), x=(3, 40), w=(24, 40))
    rng = np.random.default_rng(0)
    mod = emit(case.program, case.args, {"w": rng.standard_normal((24, 40)).astype("float32")})
    measure = clock()
    guard = MeasuredGuard(measure=measure)
    mod = selfbyoc.partition_for_tefuse(mod, composites=[dense], guard=guard)
    assert selfbyoc.report(mod).counts == {"dense": 1}
    assert measured(measure.asked[0]).kernel > 0
