"""Mutants of a user's ONNX model: seeded, valid, of every kind; a fault is found and made small."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from fuzzing import Scripted, faulty

from selfbyoc.__main__ import main
from selfbyoc.commands.fuzz.attempt import Alone, Setting
from selfbyoc.commands.fuzz.judge import CRASHED, HUNG, RAISED, UNJUDGED, WRONG
from selfbyoc.commands.fuzz.run import Plan, fuzz, replay
from selfbyoc.errors import InputError
from selfbyoc.tuning.process import Failed
from selfbyoc.tvm import GENERATION

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
from selfbyoc.commands.fuzz.like.attempt import Tried, alone, ours, runs  # noqa: E402
from selfbyoc.commands.fuzz.like.draw import Draw, drawn  # noqa: E402
from selfbyoc.commands.fuzz.like.files import read_mutant  # noqa: E402
from selfbyoc.commands.fuzz.like.judge import MutantJudge  # noqa: E402
from selfbyoc.commands.fuzz.like.mutant import Mutant  # noqa: E402
from selfbyoc.commands.fuzz.like.mutations import MUTATIONS  # noqa: E402
from selfbyoc.commands.fuzz.like.protos import typed  # noqa: E402
from selfbyoc.commands.fuzz.like.rounding import moved, overflows  # noqa: E402
from selfbyoc.commands.fuzz.like.sizes import everywhere  # noqa: E402
from selfbyoc.commands.fuzz.like.smaller import smaller  # noqa: E402
from selfbyoc.commands.fuzz.like.source import read  # noqa: E402

once = pytest.mark.skipif(GENERATION == "relay", reason="nothing of it depends on the TVM")

NETWORK = """
<ir_version: 8, opset_import: ["" : 17]>
network (float[batch, 4, height, width] image, int64[batch] label) => (float[batch, 6] scores)
<float[8, 4, 3, 3] w, float[8] bias, float[8, 2, 3, 3] grouped, float[6, 8] head,
 float[10, 6] table, float half = {0.5}>
{
  shape = Shape(image)
  convolved = Conv<pads = [1, 1, 1, 1]>(image, w, bias)
  active = Relu(convolved)
  once_more = Conv<group = 4, pads = [1, 1, 1, 1]>(active, grouped)
  joined = Add(once_more, active)
  pooled = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(joined)
  mean = GlobalAveragePool(pooled)
  flat = Flatten(mean)
  halved = Mul(flat, half)
  dense = Gemm<transB = 1>(halved, head)
  picked = Gather(table, label)
  both = Add(dense, picked)
  scores = Softmax(both)
}
"""


def saved(folder, text, name="user.onnx"):
    """A model in ONNX's own text; weights that have no numbers there are drawn."""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    for value in list(model.graph.value_info):
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        array = rng.standard_normal(shape).astype("float32")
        if value.name not in {t.name for t in model.graph.initializer}:
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    del model.graph.value_info[:]
    onnx.save(model, folder / name)
    return folder / name


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return read(saved(tmp_path_factory.mktemp("like"), NETWORK))


def mutants(source, count, seed=0):
    found = (drawn(Draw((source,), seed, n), 0).mutant for n in range(count))
    return [mutant for mutant in found if mutant is not None]


@once
def test_a_file_is_read_at_sizes_that_it_runs_at(source):
    assert source.types["image"] == ((1, 4, 64, 64), 1)
    assert source.types["pooled"][0] == (1, 8, 32, 32)
    low, high = source.ranges["label"]
    assert 0 <= low <= high < 10
    assert source.values["shape"].tolist() == [1, 4, 64, 64]


@once
def test_the_same_seed_gives_the_same_mutants(source):
    first, second = mutants(source, 12, seed=3), mutants(source, 12, seed=3)
    assert [m.model for m in first] == [m.model for m in second]
    assert [m.model for m in first] != [m.model for m in mutants(source, 12, seed=4)]
    a, b = first[0].inputs("random"), second[0].inputs("random")
    assert all((a[name] == b[name]).all() for name in a)


@once
def test_every_change_is_drawn_and_nearly_all_of_it_runs(source):
    found = mutants(source, 150)
    drawn_kinds = Counter(kind for m in found for kind, _ in m.mutations)
    assert set(drawn_kinds) == set(MUTATIONS)
    assert sum(map(runs, found[:60])) > 45
    sizes = {len(m.kinds()) for m in found}
    assert len(sizes) > 8
    read_back = [onnx.load_from_string(m.model) for m in found]
    for model in read_back:
        onnx.checker.check_model(model, full_check=True)


@once
def test_a_third_is_for_other_targets(source):
    draws = [Draw((source,), 0, n, ("llvm -mcpu=nehalem",)) for n in range(60)]
    found = [drawn(d, 0).mutant for d in draws]
    assert 10 < sum(bool(m.target) for m in found if m is not None) < 30


def test_mutants_of_a_network_are_right(source):
    """A few of each generation, in this process."""
    setting, done = Setting(), Counter()
    for mutant in mutants(source, 5, seed=1):
        tried = ours(mutant, setting)
        done["invalid" if tried.invalid else "built"] += 1
        assert tried.wrong == {}, mutant.grown
        if tried.raised:
            assert alone(mutant, setting, "random", None).raised, mutant.grown
    assert done["built"] >= 3


SUMS = """
<ir_version: 8, opset_import: ["" : 17]>
sums (float[5, 20] x, float[5, 20] y, float[5, 20] z) => (float[5, 20] r)
{
  a = Exp(x)
  b = Mul(a, z)
  c = Add(b, y)
  d = Tanh(c)
  r = Sub(d, z)
}
"""


def test_a_planted_fault_is_found_shrunk_and_replayed(tmp_path, capsys):
    """The composite forgets an addend in the last column, of 9 and more."""
    path, wrong = saved(tmp_path, SUMS), faulty(tmp_path, "wrong")
    asked = ["fuzz", "--onnx", "--like", str(path), "--count", "1", "--seconds", "900"]
    asked += ["--composites", str(wrong), "--output", str(tmp_path / "found"), "--seed", "4"]
    assert main(asked) == 1
    assert "findings: wrong" in capsys.readouterr().out
    case = min((tmp_path / "found").glob("wrong_*[0-9a-f].onnx"), key=lambda p: p.stat().st_size)
    model = onnx.load(case)
    assert [node.op_type for node in model.graph.node] == ["Add"]
    dims = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input]
    assert all(shape[-1] == 9 for shape in dims)
    assert "--replay" in case.with_suffix(".txt").read_text()
    again = replay(case, Setting(composites=(str(wrong),)))
    assert again is not None
    assert again.kind == WRONG
    assert replay(case) is None  # the built-in composites are right on it


class Answers(Scripted, MutantJudge):
    """A judge of mutants."""


BAD = {"found": {"random": [np.ones(3)]}, "wrong": {"random": "1 of 3 elements"}}
DIED = Failed("its process ended by SIGSEGV", ended=True)


@once
@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([Tried()], None),
        ([Tried(invalid="no kernel")], None),
        ([Tried(refused="InputError: no")], None),
        ([Tried(**BAD), Alone()], WRONG),
        ([Tried(**BAD), Alone(raised="E")], WRONG),  # we read it, and read it wrong
        ([Tried(**BAD), Alone(as_ours=True)], None),
        ([Tried(raised="E", stage="import")], RAISED),
        ([Tried(raised="E", stage="build"), Alone()], RAISED),
        ([Tried(raised="E", stage="build"), Alone(raised="E")], None),
        ([Failed("late", late=True), True, Alone()], HUNG),
        ([DIED, True, Alone()], CRASHED),
        ([DIED, True, DIED], None),
        ([DIED, DIED], None),  # ONNX Runtime crashes on it
        ([Failed("KeyError: 'x'"), True], UNJUDGED),
    ],
)
def test_verdicts(source, answers, kind):
    judge = Answers(*answers)
    found = judge.verdict(mutants(source, 1)[0])
    assert (found.kind if found else None) == kind
    assert judge.answers == []


@once
def test_one_extent_changes_wherever_it_is_and_nothing_else():
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[1, 4, 6, 6] x) => (float[1, 4, 6, 6] y)
        <float s = {0.5}, int64[4] shape = {1, 4, 6, 6}, float[4, 1, 1, 1] w = {1, 2, 3, 4}>
        { a = Conv<group = 4>(x, w) b = Mul(a, s) y = Reshape(b, shape) }"""
    )
    everywhere(model.graph, 4, 6)
    s, shape, w = map(onnx.numpy_helper.to_array, model.graph.initializer)
    assert (s.shape, shape.tolist(), w.shape) == ((), [1, 6, 6, 6], (6, 1, 1, 1))
    assert len(set(w.ravel())) == 6
    model.graph.output[0].ClearField("type")
    assert typed(model) is not None


@once
def test_what_is_not_valid_is_redrawn_and_counted(source):
    judge = Answers(Tried(invalid="no"), Tried(invalid="no"), Tried())
    assert judge.verdict(Draw((source,), 5, 0)) is None
    assert judge.counts["graphs"] == 1
    assert judge.counts["not valid"] >= 2


@once
def test_smaller_ones_are_valid_and_no_larger(source):
    mutant = max(mutants(source, 10), key=lambda m: len(m.mutations))
    steps = list(smaller(mutant))
    assert any(len(s.mutations) < len(mutant.mutations) for s in steps)
    assert any(len(s.kinds()) < len(mutant.kinds()) for s in steps)
    assert all(runs(s) for s in steps[:20])


@once
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "cannot be read: No such file"),
        ("this is no model", "no ONNX model that can be read"),
        ('<ir_version: 8, opset_import: ["" : 17]> g () => (float[2] y) {'
         " y = Constant<value = float[2] {1, 2}>() }", "no node that a mutant"),
    ],
)  # fmt: skip
def test_files_without_a_model_or_a_node(tmp_path, text, told):
    path = tmp_path / "user.onnx"
    if text is not None and text.startswith("<"):
        saved(tmp_path, text)
    elif text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=told):
        fuzz(Plan(count=1, like=(path,), onnx=True))


@once
def test_shapes_are_of_inputs_that_there_are(tmp_path, capsys):
    path = saved(tmp_path, NETWORK)
    assert read(path, {"image": (2, 4, 10, 12)}).types["pooled"][0] == (2, 8, 5, 6)
    with pytest.raises(InputError, match="shape: no input 'images'; known"):
        fuzz(Plan(count=1, like=(path,), shapes={"images": (1, 4, 8, 8)}))
    assert main(["fuzz", "--shape", "image=1x4x8x8"]) == 1
    assert "--shape: expected a model" in capsys.readouterr().err


@once
def test_cases_that_cannot_be_replayed(tmp_path):
    path = saved(tmp_path, NETWORK)
    with pytest.raises(InputError, match="input image has open sizes"):
        replay(path)
    path = saved(tmp_path, SUMS)
    np.savez(path.with_suffix(".npz"), x=np.ones((5, 20), "float32"))
    with pytest.raises(InputError, match=r"holds \['x'\], expected the inputs"):
        replay(path)
    Path(path.with_suffix(".npz")).write_bytes(b"no arrays")
    with pytest.raises(InputError, match="holds no inputs"):
        replay(path)


def test_cases_of_earlier_versions_are_read(tmp_path):
    """The key of what a case says of itself is in files that people keep."""
    path = saved(tmp_path, SUMS)
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {"selfbyoc.fuzz": '{"seed": 7, "grown": ["widened"]}'})
    onnx.save(model, path)
    assert (read_mutant(path).seed, read_mutant(path).grown) == (7, ("widened",))


@once
def test_a_mutant_has_inputs_that_mean_something():
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float x, bool[4] b, int64[50] i) '
        "=> (float y, bool[4] c, int64[50] j) {y = Log(x) c = Not(b) j = Neg(i)}"
    )
    mutant = Mutant(model.SerializeToString(), {"i": (2, 4)}, seed=1)
    assert runs(mutant)
    found = mutant.inputs("negative")
    assert found["x"] > 0
    assert {type(array) for array in found.values()} == {np.ndarray}
    assert found["b"].dtype == bool
    assert set(found["i"]) == {2, 3, 4}


@once
@pytest.mark.parametrize("size", [200.0, 1e10])
def test_what_an_integer_cannot_hold_is_not_compared(size):
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (int32[2] y)
        { a = Abs(x) y = Cast<to = 6>(a) }"""
    )
    mutant = Mutant(onnx.shape_inference.infer_shapes(model).SerializeToString())
    assert overflows(mutant, {"x": np.array([-size, 1], "float32")}) == (size > 1 << 31)


@once
def test_what_rounding_decides_is_no_fault():
    """A sum that lies between two steps, of bytes, which cannot move themselves."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (int8[1, 3] x) => (int8[1, 2] y, float[1, 2] m)
        <float s = {0.1}, float two = {0.2}, int8 zero = {0},
         float[3, 2] w = {1.0, 1.0, 1.0, 1.0, 1.0, 1.3}>
        { a = DequantizeLinear(x, s, zero) m = MatMul(a, w) y = QuantizeLinear(m, two, zero) }"""
    )
    mutant = Mutant(onnx.shape_inference.infer_shapes(model).SerializeToString())
    steps, sums = moved(mutant, {"x": np.array([[1, 1, 1]], "int8")})  # 1.5 and 1.65 steps
    assert steps.left_out.tolist() == [[True, False]]
    assert 0 < sums.slack < 1e-5
