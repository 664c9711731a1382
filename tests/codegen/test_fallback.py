"""A built-in composite that raises in a build: the default schedule takes over, and says so."""

from dataclasses import replace

import numpy as np
import pytest

import selfbyoc
from selfbyoc import explain, op, partition_for_tefuse, report
from selfbyoc.analysis.melting.report import melting
from selfbyoc.codegen import lower
from selfbyoc.errors import ComputeError, FallbackWarning, RecordWarning, ScheduleError
from selfbyoc.ir.emit import emit
from selfbyoc.language.composite import Composite
from selfbyoc.language.known import default_registry
from selfbyoc.machine import LEAST
from selfbyoc.tvm import GENERATION, tir

ROWS, WIDTH = 13, 37
X = {"x": ((ROWS, WIDTH), "float32")}
W = {"w": ((29, WIDTH), "float32")}


def fault(*args, **kwargs):
    raise ValueError("planted")


class Broken:
    """Built-in composites with a part that raises; they stay the built-in ones."""

    def __init__(self):
        self.old = []

    def __call__(self, composite, part, planted=None):
        new = planted or faulty(composite.kernel, part)
        kernel = replace(composite.kernel, **{part: new})
        schedule = dict.fromkeys(kernel.targets, kernel.schedule)
        new = {"schedule": schedule, "compute": kernel.compute, "pack": kernel.pack}
        for name, value in {"kernel": kernel, **new}.items():
            self.old.append((composite, name, getattr(composite, name)))
            object.__setattr__(composite, name, value)

    def undo(self):
        while self.old:
            object.__setattr__(*self.old.pop())


@pytest.fixture
def broken():
    made = Broken()
    yield made
    made.undo()


def faulty(kernel, part):
    if part in ("compute", "pack"):
        found = getattr(kernel, part)
        return dict.fromkeys(found, fault) if not callable(found) else fault
    return fault


def weights():
    rng = np.random.default_rng(0)
    return {
        "w": rng.standard_normal((29, WIDTH)).astype("float32"),
        "b": rng.standard_normal(29).astype("float32"),
    }


def program(x, w, b):
    return op.relu(op.add(op.dense(x, w), b))


def model(constants):
    shapes = {"b": ((29,), "float32")}
    given = weights() if constants else None
    return emit(program, {**X, **W, **shapes}, given)


def expected(x):
    return np.maximum(x @ weights()["w"].T + weights()["b"], 0)


def arguments(constants):
    x = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype("float32")
    return x, ([x] if constants else [x, *weights().values()])


def taken():
    """The composite that takes the model."""
    (record,) = report(partition_for_tefuse(model(True))).matched
    composite = default_registry()[record.composite]
    assert composite.kernel is not None
    return composite


@pytest.mark.parametrize("constants", [True, False], ids=["packed", "inputs"])
@pytest.mark.parametrize("part", ["plan", "pack", "compute", "schedule"])
def test_a_built_in_that_raises_falls_back(broken, part, constants):
    composite = taken()
    broken(composite, part)
    x, args = arguments(constants)
    if part == "compute" and constants:
        return left_out(composite, x)
    with pytest.warns(FallbackWarning) as caught:
        library = selfbyoc.build(model(constants))
    np.testing.assert_allclose(library(*args)[0], expected(x), rtol=1e-4, atol=1e-4)
    text = str(caught[-1].message)
    for said in (
        composite.name,
        f"float32[{ROWS}, {WIDTH}]",
        "llvm",
        "planted",
        "default schedule",
    ):
        assert said in text
    (record,) = library.report.matched
    assert (record.level, record.cause) == ("default schedule", "fallback")
    assert "planted" in record.level_reason
    assert f"default schedule {composite.name}" in str(library.report)


def left_out(composite, x):
    """Nobody else can read what was packed for this compute."""
    with pytest.warns(FallbackWarning, match="planted; it is left out there"):
        library = selfbyoc.build(model(True))
    np.testing.assert_allclose(library(x)[0], expected(x), rtol=1e-4, atol=1e-4)
    records = [r for r in library.report.records if r.composite == composite.name]
    assert {(r.status, r.cause) for r in records} == {("refused", "fallback")}
    assert "planted" in str(library.report)
    with pytest.raises(ComputeError, match=f"composite {composite.name}: .*planted"):
        selfbyoc.build(partition_for_tefuse(model(True)))


def test_what_cannot_be_lowered(monkeypatch):
    """TVM refuses the scheduled function, not the default one."""
    composite, real = taken(), lower.machine_code

    def refusing(func, symbol, target, **options):
        if is_own(func):
            raise ValueError("planted")
        return real(func, symbol, target, **options)

    seen = []

    def is_own(func):
        seen.append(func)
        return len(seen) == 1

    monkeypatch.setattr(lower, "machine_code", refusing)
    x, args = arguments(False)
    with pytest.warns(FallbackWarning, match=f"{composite.name} .*LoweringError.*planted"):
        library = selfbyoc.build(model(False))
    np.testing.assert_allclose(library(*args)[0], expected(x), rtol=1e-4, atol=1e-4)


def test_explain_and_melting_say_it(broken):
    composite = taken()
    broken(composite, "schedule")
    parted = partition_for_tefuse(model(True))
    with pytest.warns(FallbackWarning):
        (kernel,) = melting(parted).kernels
    assert kernel.level.name == "default schedule"
    with pytest.warns(FallbackWarning):
        selfbyoc.build(parted)
    (record,) = [r for r in explain(parted).records if r.status == "matched"]
    assert (record.level, "planted" in record.level_reason) == ("default schedule", True)


def test_explain_says_of_a_plan_that_raises(broken):
    composite = taken()
    broken(composite, "plan")
    (record,) = [r for r in explain(model(True)).records if r.status == "matched"]
    assert (record.level, "planted" in record.level_reason) == ("default schedule", True)


def test_a_build_that_is_right_again_is_not_reported(broken):
    composite = taken()
    broken(composite, "schedule")
    with pytest.warns(FallbackWarning):
        selfbyoc.build(model(False))
    broken.undo()
    library = selfbyoc.build(model(False))
    assert library.report.matched[0].level == ""


def conv(constants=True, batch=2):
    """A convolution, its weight a constant; a batch that is not known."""
    w = np.random.default_rng(2).standard_normal((20, 17, 3, 3)).astype("float32")
    types = {"x": ((batch, 17, 9, 11), "float32"), "w": (w.shape, "float32")}
    return emit(lambda x, w: op.conv2d(x, w, padding=1), types, {"w": w} if constants else {})


UNKNOWN = tir.Var("n", "int64") if GENERATION == "relax" else tir.Any()
IMAGES = np.random.default_rng(3).standard_normal((2, 17, 9, 11)).astype("float32")


def raises_where(is_so):
    """A plan of convolutions that raises where that holds of how a weight comes and the machine."""
    real = default_registry()["conv2d"].kernel.plan

    def plan(ops, machine):
        (op,) = ops.of("conv2d")
        if is_so(ops.packing(op, 1), machine):
            raise ZeroDivisionError("planted")
        return real(ops, machine)

    return plan


ALWAYS = raises_where(lambda packing, machine: True)
WHERE_PACKED = raises_where(lambda packing, machine: packing.shape is not None)
BUT_LEAST = raises_where(lambda packing, machine: machine != LEAST)


def planned(broken, plan):
    """Convolutions by this plan; what they give without it is right."""
    right = selfbyoc.build(conv(False), composites=[])
    w = np.random.default_rng(2).standard_normal((20, 17, 3, 3)).astype("float32")
    broken(default_registry()["conv2d"], "plan", plan)
    return right(IMAGES, w)[0]


def is_close(library, expected):
    np.testing.assert_allclose(library(IMAGES)[0], expected, rtol=1e-4, atol=1e-4)


def test_a_plan_that_raises_on_what_it_packed_itself(broken):
    """Nobody else could read the weight: it stays as it is, and the kernel with it."""
    expected = planned(broken, WHERE_PACKED)
    with pytest.warns(FallbackWarning, match="its weights are not packed: .*planted"):
        parted = partition_for_tefuse(conv())
    library = selfbyoc.build(parted, cache=False)
    is_close(library, expected)
    (record,) = library.report.matched
    assert (record.composite, record.level) == ("conv2d", "")


def test_a_plan_that_raises_on_what_another_machine_packed(broken):
    """The plan of the least machine reads it too; the schedule is the default one."""
    parted = partition_for_tefuse(conv())
    expected = planned(broken, BUT_LEAST)
    with pytest.warns(FallbackWarning, match="planted; the default schedule takes over"):
        library = selfbyoc.build(parted, cache=False)
    is_close(library, expected)
    assert library.report.matched[0].level == "default schedule"


def test_a_plan_of_symbolic_sizes_that_raises(broken):
    expected = planned(broken, ALWAYS)
    with pytest.warns(FallbackWarning) as caught:
        library = selfbyoc.build(partition_for_tefuse(conv(batch=UNKNOWN)), cache=False)
    assert "the default schedule takes over" in str(caught[-1].message)
    is_close(library, expected)
    (record,) = library.report.matched
    assert (record.composite, record.level) == ("conv2d", "default schedule")


def test_a_plan_that_raises_is_verified_melted_and_explained(broken):
    planned(broken, ALWAYS)
    with pytest.warns(FallbackWarning):
        parted = partition_for_tefuse(conv())
    verdict = selfbyoc.verify(parted)
    assert [v.status for v in verdict.verdicts] == ["raised"]
    with pytest.warns(FallbackWarning):
        (kernel,) = melting(parted).kernels
    assert kernel.level.name == "default schedule"
    (record,) = [r for r in explain(parted).records if r.status == "matched"]
    assert (record.level, "planted" in record.level_reason) == ("default schedule", True)


def test_a_plan_that_raises_is_not_tuned(broken, tmp_path):
    planned(broken, ALWAYS)
    with pytest.warns(FallbackWarning) as caught:
        tuning = selfbyoc.tune(conv(), trials=1, work_dir=tmp_path)
    assert "conv2d: float32[2, 17, 9, 11]" in (told := str(caught[-1].message))
    assert "it is not tuned" in told
    assert tuning.outcomes == ()


def test_records_of_a_plan_that_raises(broken, tmp_path):
    selfbyoc.tune(conv(False), trials=1, work_dir=tmp_path)
    planned(broken, ALWAYS)
    with (
        selfbyoc.apply_records(tmp_path),
        pytest.warns(RecordWarning, match="its record is not used: .*planted"),
        pytest.warns(FallbackWarning, match="the default schedule takes over"),
    ):
        selfbyoc.build(conv(False), cache=False)


def test_a_users_own_plan_is_an_error():
    kernel = replace(default_registry()["conv2d"].kernel, plan=WHERE_PACKED)
    own = Composite("mine", lambda x, w: op.conv2d(x, w), kernel=replace(kernel, pack={}))
    own = replace(own, kernel=replace(kernel, pack={"w": kernel.pack["weight"]}))
    with pytest.raises(ComputeError, match="composite mine: its plan raised ZeroDivisionError"):
        selfbyoc.build(conv(), composites=[own])


def test_a_users_own_is_an_error():
    own = Composite("mine", lambda x, w, b: op.relu(op.bias_add(op.dense(x, w), b)), schedule=fault)
    with pytest.raises(ScheduleError, match="composite mine: its schedule raised ValueError"):
        selfbyoc.build(model(True), composites=[own])


def test_a_copy_of_a_built_in_is_the_users():
    own = replace(taken(), schedule=fault)
    with pytest.raises(ScheduleError, match="planted"):
        selfbyoc.build(model(True), composites=[own])
