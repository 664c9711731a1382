"""`verify`: what it finds, what it says, and that the built-in composites pass it."""

import json
import time

import numpy as np
import pytest
from harness import model, random_args
from wrong_composites import SCHEDULES, K, M, N, dense_relu, pattern

import selfbyoc
from selfbyoc import BUILTIN, Case, Composite, op, verify
from selfbyoc.analysis.lint.declaration import _has_tail
from selfbyoc.analysis.verify.inputs import KINDS, arrays, data_positions
from selfbyoc.analysis.verify.records import CRASHED, HUNG, PASSED, RAISED, REFUSED, SKIPPED, WRONG
from selfbyoc.analysis.verify.rounding import no_worse
from selfbyoc.errors import InputError
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.tolerance import difference, first_wrong, tolerance
from selfbyoc.tvm import GENERATION, te, tir

ARGS = {"x": ((M, K), "float32"), "w": ((N, K), "float32")}
FLOATS = ["nan", "random", "zeros", "borders", "negative", "denormals", "large"]


def dense_model(program=pattern):
    w = np.random.default_rng(0).standard_normal((N, K)).astype("float32")
    return emit(program, ARGS, {"w": w})


def only(verification):
    (verdict,) = verification.verdicts
    return verdict


def _size(case):
    return sum(int(np.prod(shape)) for shape, _ in case.args.values())


def _small(composite):
    """The smallest case that has a tail; `make verify` runs all of them."""
    cases = [c for c in composite.cases if GENERATION in c.generations]
    return min(cases, key=lambda c: (not _has_tail(c), _size(c)))


HERE = [c for c in BUILTIN if any(GENERATION in case.generations for case in c.cases)]
SMALL = [pytest.param(c, _small(c), id=f"{c.name}-{_small(c).name}") for c in HERE]


@pytest.mark.parametrize(("composite", "case"), SMALL)
def test_built_in_composites(composite, case):
    found = verify(model(composite, case, random_args(case)), composites=[composite])
    verdict = only(found)
    assert found.ok, str(found)
    assert verdict.composite == composite.name
    assert verdict.compared, str(verdict)


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("name", [n for n in SCHEDULES if "crashes" not in n])
def test_a_wrong_schedule(name, isolate):
    schedule, kind, said = SCHEDULES[name]
    found = verify(dense_model(), composites=[dense_relu(schedule=schedule)], isolate=isolate)
    assert not found.ok
    first = only(found).failures[0]
    assert first.kind == kind
    assert first.status == (RAISED if kind == "build" else WRONG)
    assert said in str(first)
    assert found.failed == list(found.verdicts)


def test_a_crash_names_its_kernel_and_the_rest_goes_on():
    def schedule(sch, ops, target):
        if ops.dense.outputs[0][0] == (M, N):
            SCHEDULES["crashes"][0](sch, ops, target)

    def program(x, w, v, u):
        return pattern(pattern(pattern(x, v), w), u)

    args = {**ARGS, "v": ((K, K), "float32"), "u": ((7, N), "float32")}
    found = verify(emit(program, args), composites=[dense_relu(schedule=schedule)], isolate=True)
    assert {v.roots: v.status for v in found.verdicts} == {
        ("relu",): PASSED,
        ("relu_1",): CRASHED,
        ("relu_2",): PASSED,
    }
    (failed,) = found.failed
    assert "build crashed: the process ended by SIGSEGV" in str(failed)


def test_a_kernel_that_writes_beyond_its_output(monkeypatch):
    """Guards around the memory, as for a store past the end."""
    from selfbyoc.analysis.verify import run as verify_run

    real = verify_run._tensor

    def spoiling(array):
        tensor = real(array)
        if array.shape == (M, N):
            array.base[:] = 0  # the whole allocation, with its guards
        return tensor

    monkeypatch.setattr(verify_run, "_tensor", spoiling)
    found = only(verify(dense_model(), composites=[dense_relu()]))
    assert "random wrong: it wrote outside output 0" in str(found)


def test_a_kernel_that_reads_beyond_its_input():
    """A comparison drops the NaN that lies there; other bytes show it."""

    def dense(ins, call):
        x, w = ins
        k = te.reduce_axis((0, K), name="k")
        sums = te.compute((M, N), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="sums")
        last = tir.const(N - 1, "int32")
        return te.compute(
            (M, N),
            lambda i, j: tir.Select(tir.And(j == last, w[j, K] > sums[i, j]), w[j, K], sums[i, j]),
            name="most",
        )

    found = verify(dense_model(), composites=[dense_relu(compute={"dense": dense})])
    first = only(found).failures[0]
    assert (first.kind, first.status, first.against) == ("random", WRONG, "itself")
    assert "two runs on the same input differ in output 0, first [0, 18]" in str(first)
    assert "it reads memory that nobody wrote" in str(first)


@pytest.mark.parametrize("hangs", ["schedule", "reference"])
def test_a_hang_is_ended(hangs):
    def schedule(sch, ops, target):
        time.sleep(1000)

    def reference(x, w):
        time.sleep(1000)

    composite = dense_relu(**{hangs: locals()[hangs]})
    found = only(verify(dense_model(), composites=[composite], timeout=2))
    stage = "build" if hangs == "schedule" else "random"
    assert (found.status, found.failures[0].kind) == (HUNG, stage)
    assert "it did not end within 2 s (timeout)" in str(found)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), True, "3"])
def test_a_timeout_that_is_none(timeout):
    with pytest.raises(InputError, match="timeout: expected seconds above 0, found"):
        verify(dense_model(), timeout=timeout)


def test_the_kinds_of_input():
    verdict = only(verify(dense_model(), composites=[dense_relu()]))
    assert [c.kind for c in verdict.checks] == FLOATS
    assert {c.status for c in verdict.checks if c.kind != "nan"} == {PASSED}
    some = only(verify(dense_model(), composites=[dense_relu()], kinds=["borders"]))
    assert [c.kind for c in some.checks] == ["nan", "borders"]
    with pytest.raises(InputError, match=r"kinds: \['bordes'\] are unknown; expected some of"):
        verify(dense_model(), kinds=["bordes"])


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_what_they_are_called(kind):
    integers = kind == "extremes"
    dtype = "int8" if integers else "float32"
    graph = ir.read(emit(lambda x: op.relu(x), {"x": ((2, 3, 9, 9), dtype)})["main"])
    (x,) = arrays(graph, {}, kind)
    (again,) = arrays(graph, {}, kind)
    np.testing.assert_array_equal(x, again)
    assert x.dtype == dtype
    inside = x[:, 1, 1:-1, 1:-1]
    assert {
        "nan": lambda: np.isnan(x).all(),
        "random": lambda: x.min() < 0 < x.max(),
        "zeros": lambda: not x.any(),
        "borders": lambda: not inside.any() and np.abs(x[:, :, 0]).min() >= 10,
        "negative": lambda: x.max() <= -1,
        "denormals": lambda: x.any() and np.abs(x).max() < np.finfo("float32").smallest_normal,
        "large": lambda: np.abs(x).max() > 1e9,
        "extremes": lambda: set(np.unique(x)) == {-128, 127},
    }[kind]()


def test_a_kind_that_says_nothing():
    composite = Composite("plus", lambda x: op.relu(op.add(x, x)))
    case = Case(x=((3, 5), "int8"))
    mod = model(composite, case, {})
    assert only(verify(mod, composites=[composite])).status == PASSED
    verdict = only(verify(mod, composites=[composite], kinds=["large"]))
    assert verdict.status == REFUSED
    assert not verify(mod, composites=[composite], kinds=["nan"]).ok
    assert "only random, zeros, borders, extremes say something of it" in str(verdict)


def test_what_is_always_positive():
    """A variance below zero would make the reference NaN on every kind of input."""
    composite = Composite("norm", lambda x, g, b, m, v: op.relu(op.batch_norm(x, g, b, m, v)[0]))
    case = Case(x=(2, 5, 7, 6), **{n: (5,) for n in "gbmv"})
    verdict = only(verify(model(composite, case, random_args(case)), composites=[composite]))
    assert {c.status for c in verdict.checks if c.kind != "nan"} == {PASSED}


def test_the_data_is_told_from_weights_that_are_no_constants():
    graph = ir.read(emit(pattern, ARGS)["main"])
    assert [graph.inputs[i].name for i in data_positions(graph, {})] == ["x"]


def test_a_reference_that_overflows_is_skipped():
    composite = Composite("exp", lambda x: op.exp(op.multiply(x, x)))
    case = Case(x=(3, 5))
    verdict = only(verify(model(composite, case, {}), composites=[composite]))
    by_kind = {c.kind: c for c in verdict.checks}
    assert by_kind["borders"].status == SKIPPED
    assert "exp is not finite in float32 on it" in by_kind["borders"].detail
    assert by_kind["random"].status == PASSED


def test_rounding_decides():
    """A step at a value that rounding moves: the elements there are left out, or all of them."""

    def program(x, w):
        return op.cast(op.clip(op.round(op.dense(x, w)), a_min=-128, a_max=127), dtype="int8")

    composite = Composite("levels", program)
    verdict = only(verify(dense_model(program), composites=[composite]))
    assert verdict.status == PASSED, str(verdict)
    left_out = [c for c in verdict.checks if "rounding decides" in c.detail]
    assert all(c.status in (PASSED, SKIPPED) for c in left_out)


def test_what_no_f32_can_compute_is_no_error():
    """Rows of two numbers, of which some nearly cancel."""
    (norm,) = (c for c in BUILTIN if c.name == "layer_norm")
    case = Case(x=(15, 34, 2), gamma=(2,), beta=(2,))
    verdict = only(verify(model(norm, case, random_args(case)), composites=[norm]))
    assert verdict.status == PASSED, str(verdict)
    assert any("wider: values on the way are rounded" in note for note in verdict.notes)


def test_no_worse_than_tvm():
    exact = [np.array([1.0, 2.0])]
    ours, theirs = [np.array([1.0, 2.0001])], [np.array([1.0001, 2.0])]
    assert no_worse(ours, theirs, exact)
    assert not no_worse(ours, exact, exact)
    assert not no_worse([np.array([1.0, 2.1])], [np.array([1.1, 2.0])], exact)
    assert not no_worse([np.array([1.0, np.nan])], theirs, exact)


def test_denormals_are_compared():
    found = np.zeros(3, "float32")
    expected = np.full(3, 1e-40)
    assert first_wrong(found, expected, "float32", 1) is not None
    assert first_wrong(expected.astype("float32"), expected, "float32", 1) is None
    assert difference(np.array([1e-43], "float32"), np.zeros(1), "float32", 1) is not None
    assert difference(np.array([7e-45], "float32"), np.zeros(1), "float32", 1) is None
    assert tolerance("int8", 9) == 0.0


def test_equal_kernels_once_and_the_own_reference():
    def program(x, w, v):
        return pattern(pattern(pattern(x, v), v), w)

    calls = []

    def reference(x, w):
        calls.append(x.shape)
        return np.maximum(x @ w.T, 0)

    args = {**ARGS, "v": ((K, K), "float32")}
    found = verify(emit(program, args), composites=[dense_relu(reference=reference)], isolate=False)
    assert [v.roots for v in found.verdicts] == [("relu", "relu_1"), ("relu_2",)]
    assert len(calls) == 2 * (len(FLOATS) - 1)


def test_an_own_reference_that_does_not_apply():
    """The pattern says strides of 1; a match with others is not what the reference computes."""
    composite = Composite(
        "conv", lambda x, w: op.relu(op.conv2d(x, w)), reference=lambda x, w: None
    )
    case = Case(lambda x, w: op.relu(op.conv2d(x, w, strides=2)), x=(1, 3, 8, 8), w=(5, 3, 3, 3))
    found = verify(model(composite, case, {}), composites=[composite], kinds=["random"])
    assert found.ok
    assert found.summary.endswith("; not compared: the reference of conv")
    assert "the pattern leaves strides of conv2d open, here (2, 2)" in str(found)


def test_a_partitioned_module_and_packed_weights():
    def packed(w):
        return te.compute(w.shape, lambda i, j: w[w.shape[0] - 1 - i, j], name="packed")

    def dense(ins, call):
        x, w = ins
        k = te.reduce_axis((0, K), name="k")
        return te.compute(
            (M, N), lambda i, j: te.sum(x[i, k] * w[N - 1 - j, k], axis=k), name="products"
        )

    good = dense_relu(compute={"dense": dense}, pack={"w": packed})
    parted = selfbyoc.partition_for_tefuse(dense_model(), composites=[good])
    for mod in (dense_model(), parted):
        assert verify(mod, composites=[good]).ok
    wrong = dense_relu(compute={"dense": dense}, pack={"w": lambda w: packed(packed(w))})
    parted = selfbyoc.partition_for_tefuse(dense_model(), composites=[wrong])
    for mod in (dense_model(), parted):
        assert only(verify(mod, composites=[wrong])).failures[0].kind == "random"


def test_no_composite_and_no_machine():
    nothing = verify(dense_model(), composites=[])
    assert nothing.summary == "no kernel: no composite matched, so nothing was verified"
    assert not nothing.ok
    riscv = {"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mcpu": "generic-rv64"}
    found = verify(dense_model(), target=riscv)
    assert only(found).status == REFUSED
    assert not found.ok
    assert "-mtriple=riscv64-linux-gnu -mcpu=generic-rv64 does not run on" in str(found)


def test_parameters_by_name():
    x, w = (np.ones(s, d) for s, d in ARGS.values())
    assert verify(emit(pattern, ARGS), {"w": w}).ok
    del x


def test_as_data():
    schedule = SCHEDULES["never written"][0]
    found = verify(dense_model(), composites=[dense_relu(schedule=schedule)])
    assert str(found) == str(verify(dense_model(), composites=[dense_relu(schedule=schedule)]))
    data = json.loads(found.to_json())
    assert data["ok"] is False
    (kernel,) = data["kernels"]
    assert kernel["composite"] == "dense_relu"
    assert kernel["roots"] == ["relu"]
    wrong = next(c for c in kernel["checks"] if c["kind"] == "random")
    assert wrong["difference"]["index"] == [4, 0]
    assert wrong["difference"]["found"] == "nan"
    assert "TVM's own build agrees with NumPy" in wrong["detail"]


@pytest.fixture
def onnx_file(tmp_path):
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    from models import onnx_model

    path = tmp_path / "network.onnx"
    onnx.save(onnx_model(), str(path))
    return path


def test_command(onnx_file, tmp_path, capsys):
    from selfbyoc.__main__ import main

    data = tmp_path / "verdicts.json"
    kinds = ["--kind", "random", "--kind", "borders"]
    assert main(["verify", str(onnx_file), "--json", str(data), *kinds]) == 0
    out = capsys.readouterr().out
    assert "conv2d_batch_norm_relu at" in out
    assert "own schedule  random, borders" in out
    kernels = json.loads(data.read_text(encoding="utf-8"))["kernels"]
    assert f"{len(kernels)} kernels: {len(kernels)} passed" in out


def test_command_with_a_wrong_composite(onnx_file, capsys, monkeypatch):
    from selfbyoc.__main__ import main
    from selfbyoc.language import known
    from selfbyoc.language.registry import Registry

    biased = Composite(
        "biased", lambda x, w, b: op.relu(op.bias_add(op.dense(x, w), b)), SCHEDULES["crashes"][0]
    )
    monkeypatch.setattr(known, "default_registry", lambda: Registry([biased]))
    assert main(["verify", str(onnx_file)]) == 1
    assert "build crashed: the process ended by SIGSEGV" in capsys.readouterr().out


def test_command_on_a_broken_file(tmp_path, capsys):
    pytest.importorskip("onnx", reason="the onnx extra is not installed")
    from selfbyoc.__main__ import main

    path = tmp_path / "broken.onnx"
    path.write_bytes(b"no model")
    assert main(["verify", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""


@pytest.mark.parametrize("isolate", [False, True])
def test_each_verdict_is_told_as_it_comes(isolate):
    told = []
    found = verify(
        dense_model(),
        composites=[dense_relu()],
        kinds=["zeros"],
        isolate=isolate,
        watch=told.append,
    )
    assert told == list(found.verdicts)
    assert [verdict.composite for verdict in told] == ["dense_relu"]
