"""Records in a build: taken where they fit, refused with the reason, named if not used."""

import json
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from recorded import (
    BEST,
    COMPOSITE,
    built,
    built_with_warning,
    is_right,
    model,
    program,
    record_of,
    task_of,
)

import selfbyoc
from selfbyoc import Composite
from selfbyoc.codegen.records import record as records
from selfbyoc.codegen.records.record import CHOSEN, FAILED, MEASURED, WRONG, Record
from selfbyoc.codegen.records.workload import arguments
from selfbyoc.codegen.tuning_record import Tuned
from selfbyoc.commands.bench.network import Network
from selfbyoc.errors import InputError, VerificationError, VerificationWarning
from selfbyoc.models.onnx_model import import_onnx
from selfbyoc.tuning.tasks import extract_tasks
from selfbyoc.tvm import GENERATION, te, tir, tvm


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_build_takes_the_record(rng, tmp_path):  # C15, C17, C28, C6
    mod, params = model(rng)
    records.append(tmp_path, record_of(task_of(mod, params), BEST))
    x = rng.standard_normal((30, 7)).astype("float32")
    with selfbyoc.apply_records(tmp_path) as applied:
        done = selfbyoc.partition_for_tefuse(
            mod, params, selfbyoc.host_target(), composites=[COMPOSITE]
        )
        assert is_right(built(done, None, composites=None), params, x)
    (why,) = applied.used.values()
    assert "the best of 1 candidates: 0.001 ms, where the default decisions take 0.002 ms" in why
    (level,) = selfbyoc.explain(done).report.matched
    assert (level.level, level.level_reason) == ("tuned record", why)
    # The key is the same before and after packing (C23), and of what records say nothing of.
    assert extract_tasks(done)[0].key == task_of(mod, params).key


def test_weights_are_packed_as_the_record_says(rng, tmp_path):
    task = task_of(*model(rng))
    made, given = task.variant(Tuned(BEST)), task.inputs()
    assert {n: c.taken for n, c in made.choices.items()} == BEST
    at = [a.shape for a in given].index((12, 7))
    packed = arguments(made.source, task.target, given)[at]
    assert packed.shape == (2, 7, 6)
    np.testing.assert_array_equal(packed[1, :, 2], given[at][8])


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"place": ("relay" if GENERATION == "relax" else "relax", None, None)}, "records for"),
        ({"place": (None, {"kind": "llvm", "mcpu": "cortex-a72"}, None)}, "-mcpu=cortex-a72, "),
        ({"place": (None, None, 64)}, "64 cores"),
        ({"code": "another"}, "its kernel has changed since it was measured (selfbyoc 0.1.0)"),
        ({"status": FAILED, "error": "crash"}, "none of the 1 candidates could be used"),
        ({"status": WRONG}, "none of the 1 candidates could be used"),
        ({"decisions": {"rows": 7}, "code": ""}, "'rows' was given 7; expected one of"),
        ({"decisions": {"lanes": 8}, "code": ""}, "'lanes'"),
        (
            {"trace": [[["NoSuchInstruction", [], [], []]], []], "code": ""},
            "its trace does not fit",
        ),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_a_record_that_does_not_fit_is_refused(rng, tmp_path, changed, reason):  # C28
    mod, params = model(rng)
    task = task_of(mod, params)
    if "place" in changed:
        now = task.place
        found = [
            a if a is not None else b
            for a, b in zip(changed["place"], vars(now).values(), strict=True)
        ]
        changed = {"place": type(now)(*found)}
    decisions = changed.pop("decisions", BEST)
    records.append(tmp_path, record_of(task, decisions, **changed))
    library, applied, said = built_with_warning([tmp_path], mod, params)
    assert len(said) == 1
    assert reason in said[0]
    assert "blocked_dense: " in said[0]
    assert (applied.used, applied.unused) == ({}, [])
    assert is_right(library, params, rng.standard_normal((30, 7)).astype("float32"))


def test_unused_records_are_named(rng, tmp_path):
    mod, params = model(rng)
    records.append(tmp_path, record_of(task_of(mod, params), BEST))
    other, more = model(rng, rows=20)
    _, applied, said = built_with_warning([tmp_path], other, more)
    assert len(said) == 1
    assert "were not used: blocked_dense: " in said[0]
    assert "float32[30, 7]" in said[0]
    assert str(applied) == "0 kernels by records, 0 refused, 1 unused"


def test_lines_that_are_no_records_are_named(rng, tmp_path):
    mod, params = model(rng)
    task = task_of(mod, params)
    with open(tmp_path / records.FILE, "w", encoding="utf-8") as file:
        file.write('{"workload": 1}\nnonsense\n' + record_of(task, BEST).to_json()[:50])
    # The last line was cut off by a kill; what comes next is whole all the same.
    records.append(tmp_path, record_of(task, BEST))
    library, applied, said = built_with_warning([tmp_path], mod, params)
    assert [f"line {n} is not read" in text for n, text in enumerate(said, 1)] == [True] * 3
    assert len(applied.used) == 1
    assert is_right(library, params, rng.standard_normal((30, 7)).astype("float32"))


def test_partitioned_before(rng, tmp_path):  # C15: no argument of any build
    """Weights packed otherwise come too late; decisions of the schedule alone do not."""
    mod, params = model(rng)
    task = task_of(mod, params)
    done = selfbyoc.partition_for_tefuse(
        mod, params, selfbyoc.host_target(), composites=[COMPOSITE]
    )
    records.append(tmp_path / "late", record_of(task, BEST))
    _, _, said = built_with_warning([tmp_path / "late"], done, None, composites=None)
    assert "the weights are packed already: partition within apply_records" in said[0]
    records.append(tmp_path / "fits", record_of(task, {"block": 4, "rows": 10}))
    with warnings.catch_warnings(), selfbyoc.apply_records(tmp_path / "fits") as applied:
        warnings.simplefilter("error")
        library = built(done, None, composites=None)
    assert len(applied.used) == 1
    assert is_right(library, params, rng.standard_normal((30, 7)).astype("float32"))


def test_records_of_several_places_and_nested(rng, tmp_path):
    mod, params = model(rng)
    task = task_of(mod, params)
    records.append(tmp_path / "a", record_of(task, {"block": 2, "rows": 1}))
    records.append(tmp_path / "b", record_of(task, BEST, seconds=5e-7))
    with selfbyoc.apply_records(tmp_path / "a", tmp_path / "b" / records.FILE) as both:
        built(mod, params)
        with selfbyoc.apply_records(tmp_path / "b") as inner:
            built(mod, params)
    assert "0.0005 ms" in next(iter(both.used.values()))
    assert len(inner.used) == 1


def test_records_by_the_environment(rng, tmp_path, monkeypatch):  # C26
    mod, params = model(rng)
    records.append(tmp_path, record_of(task_of(mod, params), BEST))
    monkeypatch.setenv("SELFBYOC_RECORDS", str(tmp_path))
    (record,) = selfbyoc.explain(
        selfbyoc.partition_for_tefuse(mod, params, selfbyoc.host_target(), composites=[COMPOSITE])
    ).report.matched
    assert record.level == "tuned record"
    assert is_right(built(mod, params), params, rng.standard_normal((30, 7)).astype("float32"))


@pytest.mark.parametrize("places", [(), ("nowhere",)])
def test_no_such_records(places, tmp_path):
    with (
        pytest.raises(InputError, match=r"expected a folder|there is no"),
        selfbyoc.apply_records(*(tmp_path / p for p in places)),
    ):
        pass


def test_which_record_is_best():
    def record(status, ratio, decisions):
        seconds = None if ratio is None else ratio * 1e-3
        return Record("", "", "", None, status, decisions, seconds=seconds, default_seconds=1e-3)

    default, slow = record(MEASURED, 1.0, {}), record(MEASURED, 1.5, {"a": 1})
    barely, fast = record(MEASURED, 0.99, {"a": 2}), record(MEASURED, 0.5, {"a": 3})
    wrong, failed = record(WRONG, 0.1, {"a": 4}), record(FAILED, None, {"a": 5})
    assert records.best([default, slow, fast, wrong, failed]) is fast
    assert records.best([default, slow, barely]) is default
    assert records.best([slow, record(CHOSEN, 1.0, {}), fast]).is_default
    assert records.best([wrong, failed]) is None


def test_verification_knows_the_level(rng, tmp_path):
    mod, params = model(rng)
    records.append(tmp_path, record_of(task_of(mod, params), BEST))
    with selfbyoc.apply_records(tmp_path):
        library = built(mod, params, verify=True)
    (verdict,) = library.verification.verdicts
    assert (verdict.level, verdict.status) == ("tuned record", "passed")
    assert library.disabled == ()


def off_by(x, weight):
    """A decision that computes something else: nothing the tuner would have let win."""
    off, k = selfbyoc.choose("off", (0, 1), default=0), te.reduce_axis((0, int(x.shape[1])), "k")
    shape = (int(x.shape[0]), int(weight.shape[0]))
    dot = te.compute(shape, lambda i, u: te.sum(x(i, k) * weight(u, k), axis=k), "dot")
    zero = tir.const(0, "float32")
    return te.compute(
        shape, lambda i, u: tir.Max(zero, dot(i, u)) + tir.const(off, "float32"), "out"
    )


OFF_BY = Composite("off_by", program, lambda sch, ops, target: None, compute=off_by)


@pytest.fixture
def off(rng, tmp_path):
    """A model, its weights, and how to partition it; its record is wrong."""
    (mod, params), target = model(rng), selfbyoc.host_target()

    def partition():
        return selfbyoc.partition_for_tefuse(mod, params, target, composites=[OFF_BY])

    records.append(tmp_path, record_of(extract_tasks(partition())[0], {"off": 1}))
    return mod, params, partition


WRONG_RECORD = "verification found it wrong on a tuned schedule"


def test_verification_goes_down_from_a_wrong_record(off, rng, tmp_path):
    mod, params, _ = off
    with selfbyoc.apply_records(tmp_path), pytest.warns(VerificationWarning, match=WRONG_RECORD):
        library = built(mod, params, verify=True, composites=[OFF_BY])
    assert [v.level for v in library.verification.verdicts] == ["own schedule"]
    assert [d.level for d in library.disabled] == ["tuned record"]
    assert is_right(library, params, rng.standard_normal((30, 7)).astype("float32"))


def test_a_wrong_record_in_a_module_partitioned_before(off, tmp_path):
    """Its weights and its compute are as the record says: nothing else can take the ops."""
    with (
        selfbyoc.apply_records(tmp_path),
        pytest.warns(VerificationWarning, match="wrong on (a tuned|the default) schedule"),
        pytest.raises(VerificationError, match="mod was partitioned before"),
    ):
        built(off[2](), None, composites=None, verify=True)


def test_weights_that_are_packed_through_other_ops(tmp_path):
    """What partitioning schedules for a record is what the tuner scheduled, names included."""
    net = Network()
    y = net.dense(net.dense(net.input("x", 30, 16), 32, act="gelu"), 16)
    mod = import_onnx(net.model(y))
    (task,) = extract_tasks(selfbyoc.partition_for_tefuse(mod, target=selfbyoc.host_target()))
    assert "tefuse.packed" in task.source.attrs
    records.append(tmp_path, record_of(task, {}))
    with selfbyoc.apply_records(tmp_path) as applied:
        selfbyoc.partition_for_tefuse(mod, target=selfbyoc.host_target())
    assert (len(applied.used), applied.refused) == (1, {})


BUILTIN = """
    import sys, numpy as np, selfbyoc
    from selfbyoc import op
    from selfbyoc.ir.emit import emit
    from selfbyoc.tuning.tasks import extract_tasks
    args = {"x": ((30, 7), "float32"), "w": ((12, 7), "float32")}
    mod = emit(lambda x, w: op.relu(op.dense(x, w)), args)
    (task,) = extract_tasks(selfbyoc.partition_for_tefuse(mod, target=selfbyoc.host_target()))
    print(task.key, task.variant().code)
"""


def test_keys_survive_a_process():  # C23
    run = [sys.executable, "-c", textwrap.dedent(BUILTIN)]
    first, second = (
        subprocess.run(run, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first == second
    assert len(first.split()) == 2


def test_records_are_json(rng):
    record = record_of(task_of(*model(rng)), BEST)
    assert Record.from_json(record.to_json()) == record
    assert json.loads(record.to_json())["decisions"] == BEST


def test_a_switch_in_passcontext_is_not_to_be_had():
    """C26: TVM knows the keys that C++ registered, and none comes from Python; hence
    `apply_records` and the environment.
    """
    with (
        pytest.raises(AttributeError, match=r"Invalid config option.*tefuse\.records"),
        tvm.transform.PassContext(config={"tefuse.records": "records"}),
    ):
        pass
    assert "tefuse.records" not in tvm.transform.PassContext.list_configs()
