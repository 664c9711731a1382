"""`bench MODEL.onnx`: a user's files judged and run, for a target, on so many threads."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import numpy_helper
from onnx_models import FLOAT, INT64, dense, model, own, random, saved, sentence, strange, value

import selfbyoc.commands.bench.measure as measuring
import selfbyoc.commands.bench.run as running
from selfbyoc.__main__ import main
from selfbyoc.commands.bench import reference as references
from selfbyoc.commands.bench import worker
from selfbyoc.commands.bench.checking import Expectation, checked, expectation
from selfbyoc.commands.bench.contenders import CONTENDERS
from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.commands.bench.measure import Method
from selfbyoc.commands.bench.own import OWN
from selfbyoc.commands.bench.records import OURS, Result, Row, read_report
from selfbyoc.commands.bench.roof import Roof
from selfbyoc.commands.bench.run import Selection
from selfbyoc.commands.bench.setting import make_setting
from selfbyoc.commands.bench.workload import counted
from selfbyoc.common.threads import core_count
from selfbyoc.errors import InputError, TargetError, UnsupportedOp

ROOF = Roof(1, 100.0, {"memory": 10.0}, 2.0, {})
QUICK = Method(turns=1, windows=2, window=0.001, warm=0.001)


# ---- what is right


def judged(found, *truth, terms=1):
    arrays = [np.asarray(t) for t in truth]
    return checked(Result(1.0), [np.asarray(f) for f in found], Expectation(arrays, terms))


def test_results_of_all_types_are_checked():
    one = np.float32(1)
    assert not judged([[True, False]], [True, False]).wrong
    assert judged([[True, True]], [True, False]).wrong
    assert judged([[1, 2]], [1, 3]).wrong
    assert judged([np.uint8([0])], np.uint8([255])).error == 255
    assert not judged([np.float32([])], np.float32([])).wrong
    assert judged([[one * np.nan]], [one]).wrong
    assert judged([[one, one]], [one]).wrong
    assert not judged([[one * 0]], [one * 0]).wrong
    # A small output beside a large one is measured by its own size.
    assert judged([[one], [one * 1000]], [one * 1.01], [one * 1000]).wrong
    assert not judged([[one]], [one * 1.01], terms=0).wrong  # not judged, but told
    assert judged([[one]], [one * 1.01], terms=0).error == pytest.approx(0.01, rel=1e-4)


def test_onnx_itself_is_the_truth_where_onnx_runtime_is_not(tmp_path, monkeypatch):
    path, x = str(saved(tmp_path / "m.onnx", dense())), inputs_of(dense())
    wanted = np.maximum(x["x"].astype("float64") @ random(24, 31), 0)
    np.testing.assert_allclose(references.unoptimised(path, x)[0], wanted, atol=1e-5)

    def missing(path, inputs):
        raise InputError("not here")

    monkeypatch.setattr(references, "_runtime", missing)
    (found,) = references.unoptimised(path, x)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    saved(tmp_path / "m.onnx", dense(opset=12))
    with pytest.raises(InputError, match=r"ONNX Runtime: .*not here; .*opset 12 is below 13"):
        references.unoptimised(path, x)


def test_onnx_itself_computes_in_float64_throughout():
    """Constants within nodes, and what is cast to float32."""
    third = numpy_helper.from_array(np.float32([1 / 3]))
    nodes = [
        ("Constant", [], "third", {"value": third}), ("Cast", ["n"], "f", {"to": FLOAT}),
        ("Mul", ["f", "third"], "p", {}), ("Mul", ["p", "x"], "y", {}),
    ]  # fmt: skip
    ends = [value("n", INT64, 5), value("x", FLOAT, 5)], [value("y", FLOAT, 5)]
    n, x = np.arange(1, 6), random(5)
    (found,) = references.reference(model(nodes, *ends), {"n": n, "x": x})
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, n * float(np.float32(1 / 3)) * x.astype(float), rtol=1e-14)


def test_what_cannot_be_judged_is_said(tmp_path, monkeypatch):
    """Infinite outputs, and steps of a quantised model."""
    log = model([("Log", ["x"], "y", {})], [value("x", FLOAT, 9)], [value("y", FLOAT, 9)])
    scale = {"s": np.float32(0.1), "z": np.uint8(128)}
    nodes = [("QuantizeLinear", list("xsz"), "q", {}), ("DequantizeLinear", list("qsz"), "y", {})]
    steps = model(nodes, [value("x", FLOAT, 9)], [value("y", FLOAT, 9)], **scale)
    for made, reason in ((log, "not finite"), (steps, "it quantises"), (strange(), "not checked")):
        path = saved(tmp_path / "m.onnx", made)
        found = expectation(own(path), made, str(path), inputs_of(made), 1, 300.0)
        assert reason in found.unknown


# ---- targets and threads


def test_everybody_runs_on_as_many_threads():
    assert json.loads(make_setting(1).target)["num-cores"] == 1
    found = make_setting(1, "llvm -mcpu=x86-64")
    assert str(found) == "llvm -mcpu=x86-64 -num-cores=1"
    assert str(found.with_threads(2)) == "llvm -mcpu=x86-64 -num-cores=2"
    assert found == make_setting(1, '{"kind": "llvm", "mcpu": "x86-64", "num-cores": 1}')
    assert found.tvm_target().attrs["num-cores"] == 1
    for wrong in (0, core_count() + 1):
        with pytest.raises(InputError, match=f"expected 1 to {core_count()}.*not {wrong}"):
            make_setting(wrong)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("c", "kind llvm, not c"),
        ("nonsense", "not a target of this TVM"),
        ('{"kind":', "not a target of this TVM"),
        ("llvm -mcpu=haswel", "haswell"),
        ("llvm -mcpu=haswell -mattr=+avx512f,+xop,+tbm", "bench: code for .* may use"),
        ("llvm -num-cores=99", "num-cores is 99, but 1 threads run"),
    ],
)
def test_wrong_targets(target, says):
    with pytest.raises(TargetError, match=says):
        make_setting(1, target)


# ---- runs


def row(name, key=""):
    return Row(name, OWN, 10**6, 10**4, {OURS: Result(1.0, 1.0, 1.0, 9)}, key=key)


@pytest.fixture
def measured(monkeypatch):
    """The names that were asked for; nothing is built."""
    asked = []

    def fake(workload, processes, setting, method, says):
        asked.append(workload.name)
        return row(workload.name, workload.key)

    monkeypatch.setattr(running, "measure", fake)
    monkeypatch.setattr(running, "_roofs", lambda setting, method: (ROOF,))
    return asked


def test_a_report_goes_on_for_the_same_target_and_threads_only(tmp_path, measured):
    json_path = tmp_path / "a.json"
    path = saved(tmp_path / "m.onnx", dense())
    given = {"setting": make_setting(1, "llvm -mcpu=x86-64"), "resume": True}
    running.run(Selection(own=[own(path)]), Method(), json_path, **given)
    assert read_report(json_path).target == "llvm -mcpu=x86-64 -num-cores=1"
    running.run(Selection(own=[own(path)]), Method(), json_path, **given)
    assert measured == ["m"]
    saved(path, dense(7))  # another file of the same name
    running.run(Selection(own=[own(path)]), Method(), json_path, **given)
    assert measured == ["m", "m"]
    for other in (make_setting(1), make_setting(1, "llvm -mattr=+sse3")):
        with pytest.raises(InputError, match="was measured for llvm -mcpu=x86-64"):
            running.run(
                Selection(own=[own(path)]), Method(), json_path, **given | {"setting": other}
            )
    report = replace(read_report(json_path), threads=2)
    json_path.write_text(report.to_json())
    with pytest.raises(InputError, match=r"on 2 threads, this is .* on 1"):
        running.run(Selection(own=[own(path)]), Method(), json_path, **given)


def test_what_nobody_could_build_is_tried_again(tmp_path, measured, monkeypatch):
    json_path, selection = tmp_path / "a.json", Selection(own=[own_dense(tmp_path)])
    failed = replace(row("m"), results={OURS: Result(skipped="no")}, key=selection.own[0].key)
    fake = running.measure
    monkeypatch.setattr(running, "measure", lambda *args: failed)
    running.run(selection, Method(), json_path)
    monkeypatch.setattr(running, "measure", fake)
    assert running.run(selection, Method(), json_path, resume=True).rows[0].built


def own_dense(folder):
    return own(saved(folder / "m.onnx", dense()))


def test_the_command_line(tmp_path, measured, capsys):
    path = str(saved(tmp_path / "m.onnx", dense()))
    cases = {
        ("--sweep",): "--sweep: of the suite",
        ("--peers", "nobody"): "unknown ['nobody']",
        ("--threads", "999"): "threads: expected 1 to",
        ("--target", "nonsense"): "not a target of this TVM",
        ("--shape", "y=1"): "no input 'y'",
    }
    for options, says in cases.items():
        assert main(["bench", path, *options]) == 1
        assert says in capsys.readouterr().err
    assert main(["bench", "--shape", "x=1"]) == 1
    assert "there is none" in capsys.readouterr().err
    assert measured == []
    assert main(["bench", path, "--threads", "1", "--shape", "x=9x24"]) == 0
    assert measured == ["m x=9x24"]


def test_own_models_against_who_is_here(tmp_path, monkeypatch, capsys):
    """Three files: ours and TVM's own build are right on two, and nobody can run the third."""
    monkeypatch.setattr(running, "_roofs", lambda setting, method: (ROOF,))
    monkeypatch.setattr("selfbyoc.commands.bench.command.Method", lambda: QUICK)
    found = {"ids": sentence(), "net": dense(), "odd": strange()}
    paths = [str(saved(tmp_path / f"{name}.onnx", made)) for name, made in found.items()]
    out, picture = tmp_path / "a.json", tmp_path / "a.svg"
    options = ["--peers", "tvm", "--shape", "input.ids=2x7", "--threads", "1", "--json", str(out)]
    assert main(["bench", *paths, *options, "--roofline", str(picture)]) == 1
    said = capsys.readouterr()
    assert "error: nobody can run odd: selfbyoc: " in said.err
    assert "Strange" in said.err
    ids, net, odd = read_report(out).rows
    assert (ids.name, net.name, odd.name) == ("ids input.ids=2x7", "net", "odd")
    assert net.flops == 2 * 5 * 24 * 31
    for workload in (ids, net):
        assert not workload.unchecked
        for name in (OURS, "tvm"):
            assert workload.results[name].counts
            assert workload.results[name].relative < 1e-5
    assert net.ours.note == "1 dense"
    assert not odd.built
    assert picture.read_text().startswith("<svg")
    assert main(["bench", "--markdown", str(out)]) == 0
    text = capsys.readouterr().out
    assert "built for llvm" in text
    assert "**Own models**" in text
    assert "| net | 0.00744 |" in text


def test_a_large_file_has_its_weights_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "LARGE", 100)
    whole = dense()
    whole.graph.initializer[0].CopyFrom(numpy_helper.from_array(random(24, 31), "w"))
    path = measuring.saved(whole, tmp_path)
    found = references.unoptimised(path, inputs_of(dense()))
    np.testing.assert_array_equal(found, references.unoptimised(str(saved(
        tmp_path / "other.onnx", dense())), inputs_of(dense())))  # fmt: skip
    assert len(list(tmp_path.iterdir())) == 3


def test_what_tvm_cannot_read_is_not_counted():
    assert counted(strange()).flops == 0
    assert counted(dense()).flops == 2 * 5 * 24 * 31


# ---- PyTorch


def graph_of_torch(made):
    pytest.importorskip("torch")
    from selfbyoc.commands.bench.contenders.torch_graph import graph_module

    return graph_module(made)


def test_pytorch_leaves_out_what_it_has_no_function_for():
    with pytest.raises(UnsupportedOp, match="Strange has no function of PyTorch here"):
        graph_of_torch(strange())
    columns = model(
        [("Gather", ["w", "x"], "y", {"axis": 1})], [value("x", INT64, 2)],
        [value("y", FLOAT, 5, 2)], w=random(5, 6),
    )  # fmt: skip
    with pytest.raises(UnsupportedOp, match="other things than rows of a table"):
        graph_of_torch(columns)


def test_only_gelu_is_joined_to_gelu():
    """erf(x / 2) + 1 times x, halved, is none; neither is one whose parts others read."""
    torch = pytest.importorskip("torch")
    nodes = [
        ("Div", ["x", "root"], "d", {}), ("Erf", ["d"], "e", {}), ("Add", ["e", "one"], "p", {}),
        ("Mul", ["x", "p"], "m", {}), ("Mul", ["m", "half"], "y", {}),
    ]  # fmt: skip
    numbers = {"one": np.float32(1), "half": np.float32(0.5)}
    ends = [value("x", FLOAT, 9)], [value("y", FLOAT, 9)]
    for root, joined in ((np.sqrt(np.float32(2)), True), (np.float32(2), False)):
        made = model(nodes, *ends, root=root, **numbers)
        module, x = graph_of_torch(made), inputs_of(made)
        called = [n.target for n in module.graph.nodes if n.op == "call_function"]
        assert (called == [torch.nn.functional.gelu]) == joined
        (found,) = module(torch.from_numpy(x["x"]))
        np.testing.assert_allclose(found, references.reference(made, x)[0], atol=1e-6)


def test_a_reason_is_one_line_that_says_why():
    thrown = "Exception from src/core.cpp:84:\nSummary:\n-- No conversion rule found: Strange\n\n"
    found = worker._answered(raising, (RuntimeError(thrown),))
    assert found == (None, "RuntimeError: No conversion rule found: Strange")
    found = worker._answered(raising, (ValueError("a b\nc"),))
    assert found == (None, "ValueError: a b")


def raising(err):
    raise err


def test_the_peers_of_an_own_model_are_all_that_there_are():
    assert Selection().names(OWN) == [c.name for c in CONTENDERS]
