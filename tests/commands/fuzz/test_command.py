"""The fuzzer as a command: what is planted is found, shrunk, written and replayed."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from fuzzing import Scripted, faulty

from selfbyoc.__main__ import main
from selfbyoc.commands.fuzz.attempt import Alone, Ours, Setting, ours
from selfbyoc.commands.fuzz.infer import infer
from selfbyoc.commands.fuzz.judge import CRASHED, HUNG, MISSED, RAISED, UNJUDGED, WRONG, Judge
from selfbyoc.commands.fuzz.meaning import graph_of, is_undefined
from selfbyoc.commands.fuzz.oracle import differing
from selfbyoc.commands.fuzz.program import CONSTANT, INPUT, Node, Plant, Program, from_json
from selfbyoc.commands.fuzz.run import Plan, Result, fuzz
from selfbyoc.language.known import default_registry
from selfbyoc.tuning.process import Failed
from selfbyoc.tvm import GENERATION, target_dict


@pytest.fixture
def found(tmp_path, capsys):
    """Fuzz a composite with a fault, one program of a seed that has what it takes; -> the exit
    status, the data, what was written and printed.
    """

    def run(fault, seed, *more):
        path, out = faulty(tmp_path, fault), tmp_path / "found"
        asked = [
            "fuzz",
            "--count",
            "1",
            "--seconds",
            "900",
            "--seed",
            str(seed),
            "--composites",
            str(path),
            *more,
        ]
        asked += ["--output", str(out), "--json", str(tmp_path / "all.json")]
        status = main(asked)
        data = json.loads((tmp_path / "all.json").read_text())
        return status, data, out, capsys.readouterr().out

    return run


def test_a_planted_wrong_compute_is_found_shrunk_and_replayed(found, tmp_path):
    status, data, out, printed = found("wrong", 7)
    wrong = [f for f in data["findings"] if f["kind"] == WRONG]
    assert status == 1
    assert wrong
    assert "findings: wrong" in printed
    program = from_json(json.dumps(wrong[0]["case"]))
    assert "add" in program.kinds()
    assert len(program.kinds()) == 1
    assert infer(program)[program.outputs[0]][0][0][-1] == 9  # the narrowest that shows it
    case = next(out.glob("wrong_*[0-9a-f].json"))
    replay = ["fuzz", "--replay", str(case)]
    assert main([*replay, "--composites", str(tmp_path / "wrong.py")]) == 1
    assert main(replay) == 0  # the built-in composites are right on it


def test_what_is_written_is_a_test_that_runs(found):
    _, data, out, _ = found("raised", 4)
    assert {f["kind"] for f in data["findings"]} == {RAISED}
    path = next(out.glob("test_raised_*.py"))
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    (test,) = (f for name, f in scope.items() if name.startswith("test_"))
    test()  # of the built-in composites, which do not raise
    assert "planted" in path.read_text()


def test_a_process_that_dies_is_a_finding_and_the_run_goes_on(found):
    status, data, _, _ = found("crash", 12, "--count", "2", "--shrink", "2")
    assert status == 1
    assert data["counts"]["graphs"] == 2
    crashed = [f for f in data["findings"] if f["kind"] == CRASHED]
    assert crashed
    assert "SIGSEGV" in crashed[0]["text"]
    assert {f["kind"] for f in data["findings"]} == {CRASHED}


def test_a_twin_that_matches_otherwise_is_a_finding(found):
    _, data, _, _ = found("missed", 0)
    missed = [f for f in data["findings"] if f["kind"] == MISSED]
    assert missed
    assert "maximum_commuted: 1 written_so; nothing matched after" in missed[0]["text"]


class Answers(Scripted, Judge):
    """A judge of programs."""


ONE = Program((Node(INPUT, shape=(3,), dtype="float32"), Node("exp", (0,))), (1,))
BAD = {"found": {"random": [np.ones(3)]}, "wrong": {"random": "1 of 3 elements"}}


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([Failed("it did not end within 1 s", late=True), Alone()], HUNG),
        ([Failed("its process ended by SIGSEGV"), Alone()], CRASHED),
        ([Failed("ValueError: no oracle for it")], UNJUDGED),
        ([Failed("its process ended by SIGSEGV"), Failed("its process ended by SIGSEGV")], None),
        ([Ours(raised="E"), Alone()], RAISED),
        ([Ours(raised="E"), Alone(raised="E")], None),
        ([Ours(raised="E", undefined=True)], None),
        ([Ours(unwritten="no")], None),
        ([Ours(**BAD), Alone(as_numpy=True)], WRONG),
        ([Ours(**BAD), Alone()], WRONG),
        ([Ours(**BAD), Alone(as_ours=True)], None),
        ([Ours(**BAD), Alone(undecided=True)], None),
        ([Ours(unknown="x", found=BAD["found"]), Alone()], WRONG),
        ([Ours(unknown="x", found=BAD["found"]), Alone(raised="E")], None),
        ([Ours()], None),
    ],
)
def test_verdicts(answers, kind):
    judge = Answers(*answers)
    found = judge.verdict(ONE)
    assert (found.kind if found else None) == kind
    assert judge.answers == []


@pytest.mark.parametrize("cpu", ["haswell", "cascadelake"])
def test_bytes_that_tvm_adds_up_in_16_bits_are_a_limit_of_its_own(cpu):
    """As long as it is as wrong: what is wrong in our build alone is a finding."""
    leaves = (Node(INPUT, shape=(1, 4, 5, 5), dtype="int8"),) * 2
    program = Program((*leaves, Node("conv2d", (0, 1), {"out_dtype": "int32"})), (2,))
    is_known = cpu == "haswell" and GENERATION == "relay"
    for alone, found in ((Alone(), not is_known), (Alone(as_numpy=True), True)):
        judge = Answers(Ours(**BAD), alone)
        judge.setting = Setting(f"llvm -mcpu={cpu}")
        assert bool(judge.verdict(program)) == found


@pytest.mark.parametrize("dtype", ["int16", "float16"])
def test_which_integer_a_float_becomes_is_not_compared(dtype):
    leaves = (Node(INPUT, shape=(3, 4), dtype="float32"),) * 2
    plant = Plant("nn.dense", 0, "out_dtype", dtype)
    program = Program((*leaves, Node("dense", (0, 1))), (2,), plant=plant)
    judge = Answers(Ours(unknown="x", found=BAD["found"]), Alone())
    assert bool(judge.verdict(program)) == (dtype == "float16")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_what_tvm_computes_in_float32_is_a_limit_of_its_own(kind, dtype):
    leaves = [Node(INPUT, shape=s, dtype=dtype) for s in ((5, 3), (3,), (3,))]
    inputs = (0, 1, 2) if kind == "layer_norm" else (0, 1)
    program = Program((*leaves, Node(kind, inputs)), (3,))
    limited = {"relay": "layer_norm", "relax": "rms_norm"}[GENERATION]
    is_known = dtype == "float64" and kind == limited
    assert bool(Answers(Ours(**BAD), Alone()).verdict(program)) != is_known


@pytest.mark.parametrize("extent", [1, 3])
def test_of_one_number_a_bias_is_a_residual(extent):
    """Two composites can take it, each whole."""
    leaves = (Node(INPUT, shape=(1, extent), dtype="float32"),) * 2
    program = Program((*leaves, Node("add", (0, 1))), (2,), seed=1)
    judge = Answers(Ours(counts={"conv2d": 1}, twin_counts={"conv2d_add": 1}))
    assert (judge.verdict(program) is None) == (extent == 1)


@pytest.fixture
def broken_dense():
    """The built-in `dense` with a schedule that raises."""
    (dense,) = (c for c in default_registry() if c.name == "dense")

    def fault(*args):
        raise ValueError("planted")

    kernel = replace(dense.kernel, schedule=fault)
    new = {"kernel": kernel, "schedule": dict.fromkeys(kernel.targets, fault)}
    old = {name: getattr(dense, name) for name in new}
    for name, value in new.items():
        object.__setattr__(dense, name, value)
    yield
    for name, value in old.items():
        object.__setattr__(dense, name, value)


def test_a_built_in_composite_that_raises_is_a_fault(broken_dense):
    """Though the build goes on with the default schedule."""
    nodes = (
        Node(INPUT, shape=(3, 8), dtype="float32"), Node(CONSTANT, shape=(5, 8), dtype="float32"),
        Node("dense", (0, 1)),
    )  # fmt: skip
    found = ours(Program(nodes, (2,)).to_json(), Setting())
    assert "planted" in found.raised
    assert found.stage == "build"


def test_what_has_no_meaning_is_not_compared():
    def asked(kind, number, dtype, attrs):
        leaves = (Node(INPUT, shape=(3,), dtype=dtype), Node(INPUT, shape=(3,), dtype=dtype))
        inputs = (0,) if attrs else (0, 1)
        graph = graph_of(Program((*leaves, Node(kind, inputs, attrs)), (2,)))
        return is_undefined(graph, {v: np.full(3, number, dtype) for v in graph.inputs})

    def asked_of_exp(dtype, number):
        leaf = Node(INPUT, shape=(3,), dtype=dtype)
        graph = graph_of(Program((leaf, Node("exp", (0,))), (1,)))
        (x,), (y,) = graph.inputs, graph.outputs
        return is_undefined(graph, {x: np.full(3, number), y: np.exp(np.full(3, number))})

    byte = {"dtype": "int8"}
    assert not asked("cast", 127.5, "float32", byte)
    assert asked("cast", 128.0, "float32", byte)
    assert asked("cast", np.nan, "float32", byte)
    assert not asked("cast", 300, "int32", byte)
    assert asked("maximum", np.nan, "float32", {})
    assert not asked("maximum", np.inf, "float32", {})
    assert not asked("add", np.nan, "float32", {})
    assert [asked_of_exp(dtype, 89.0) for dtype in ("float16", "float32", "float64")] == [
        True, True, False,
    ]  # fmt: skip
    assert not asked_of_exp("float32", np.inf)
    assert [asked_of_exp("float32", number) for number in (-87.0, -95.0, -1000.0)] == [
        False, True, False,
    ]  # fmt: skip
    shifts = [asked("right_shift", n, "int32", {}) for n in (0, 31, 32, -1)]
    assert shifts == [False, False, True, True]


def test_results_differ_in_shape_number_and_places_of_nan():
    graph = graph_of(ONE)
    one, nan = np.ones(3, "float32"), np.array([1, np.nan, 1], "float32")
    assert differing([one], [one], graph) == ""
    assert differing([nan], [nan], graph) == ""
    assert "nan" in differing([nan], [one], graph)
    assert "outputs" in differing([one, one], [one], graph)
    assert "expected float32[3]" in differing([one.astype("float64")], [one], graph)


@pytest.mark.parametrize(
    ("more", "text"),
    [(["--replay", "missing.json"], "missing.json"), (["--composites", "missing.py"], "missing")],
)
def test_what_makes_no_sense_is_refused(more, text, capsys):
    assert main(["fuzz", *more]) == 1
    assert text in capsys.readouterr().err


def test_how_much_llvm_makes_of_code_is_asked(tmp_path, capsys):
    path = tmp_path / "all.json"
    asked = ["fuzz", "--count", "1", "--seed", "5", "--opt-level", "0", "--json", str(path)]
    assert main([*asked, "--output", str(tmp_path / "found")]) == 0
    assert json.loads(path.read_text())["opt_level"] == 0
    assert main(["fuzz", "--tables", str(path)]) == 0
    assert "opt-level 0" in capsys.readouterr().out
    program = Program((Node(INPUT, shape=(2,), dtype="float32"),), (0,))
    levels = [target_dict(Setting(RUNS_HERE, (), n).of(program)).get("opt-level") for n in (0, 3)]
    assert levels == [0, 3]


def test_a_short_run_finds_nothing(tmp_path):
    done = fuzz(Plan(600.0, count=3, seed=5, jobs=1, folder=tmp_path))
    assert [f.text for f in done.findings] == []
    assert done.counts["graphs"] == 3
    assert done.counts["builds"] >= 3
    assert sum(done.matches.values()) > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("onnx", [False, True])
def test_a_longer_run_finds_nothing(onnx, tmp_path):
    """On AVX2, whatever this machine is."""
    if onnx:
        pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    setting = Setting(RUNS_HERE)
    plan = Plan(600.0, count=40, seed=11, folder=tmp_path, setting=setting, onnx=onnx)
    done = fuzz(plan)
    assert [f.text for f in done.findings] == []
    assert (done.counts["graphs"], done.counts["twins"] > 0) == (40, True)


def test_runs_are_added_up_in_a_table(tmp_path, capsys):
    plan, files = Plan(setting=Setting(RUNS_HERE)), [tmp_path / f"{n}.json" for n in range(2)]
    for n, path in enumerate(files):
        counts = Counter({"graphs": 1000 + n, "builds": 1300, "twins built": 7})
        done = Result(900.0, counts, alike=Counter({"wrong: dense": n}))
        path.write_text(done.to_json(plan))
    tables = [f"--tables={path}" for path in files]
    assert main(["fuzz", *tables]) == 0
    name = f"{GENERATION}, `haswell`, opt-level 0"
    cells = "2 | 2,001 | 2,600 | 0 | 0 | 0 | 0 | 14 | 1 | 4,002 |"
    out = capsys.readouterr().out
    assert f"| {name} | {cells}" in out
    assert f"| all | {cells}" in out
    files[0].write_text(files[0].read_text().replace('"seed": 0', '"seed": "x"'))
    assert main(["fuzz", *tables]) == 1
    assert "no run of the fuzzer: seed" in capsys.readouterr().err


HASTY = {"relax": '{"kind": "llvm", "mcpu": "haswell", "opt-level": 0}'}
RUNS_HERE = HASTY.get(GENERATION, "llvm -mcpu=haswell -opt-level=0")
