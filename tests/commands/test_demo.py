"""The demonstration's parts, and the command line."""

import subprocess
import sys

import numpy as np
import pytest

from selfbyoc import BUILTIN, partition_for_tefuse, report
from selfbyoc.__main__ import main
from selfbyoc.commands.summary import left, taken
from selfbyoc.errors import InputError, MissingExtra
from selfbyoc.language.outline import kinds
from selfbyoc.runtime.timing import latency
from selfbyoc.tvm import GENERATION

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from selfbyoc.models import onnx_model as models  # noqa: E402 (needs onnx)


@pytest.fixture(scope="module")
def googlenet():
    return models.light_model("inception_v1")


def session(model):
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def image(seed=1):
    return {"data_0": np.random.default_rng(seed).standard_normal((1, 3, 224, 224), np.float32)}


def test_refilled_weights_are_seeded_and_differ_by_channel(googlenet):
    again = models.light_model("inception_v1")
    weights = {i.name: onnx.numpy_helper.to_array(i) for i in googlenet.graph.initializer}
    for initializer in again.graph.initializer:
        array = onnx.numpy_helper.to_array(initializer)
        np.testing.assert_array_equal(array, weights[initializer.name])
        if array.ndim == 4 and array.dtype == np.float32:
            assert array.std() > 0
    assert not any(node.op_type == "ConstantOfShape" for node in googlenet.graph.node)


@pytest.mark.parametrize("name", ["inception_v1", "inception_v2", "resnet50", "densenet121"])
def test_activations_stay_in_a_sane_range(name):
    """Every intermediate value, not only the softmax at the end, which hides an explosion.

    ResNet's sums doubled the variance sixteen times; a certain softmax is the same for any logits.
    DenseNet's scales, read through an Unsqueeze, silenced it: one result for any image.
    """
    probe = models.light_model(name)
    names = [name for node in probe.graph.node for name in node.output if node.op_type == "Conv"]
    probe.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    (given,) = (i.name for i in probe.graph.input)
    for value in session(probe).run(names, {given: image()["data_0"]}):
        assert np.isfinite(value).all()
        assert 0.05 < value.std() < 20


def test_the_result_depends_on_the_image(googlenet):
    run = session(googlenet).run
    (one,), (other,) = run(None, image(1)), run(None, image(2))
    assert one.max() < 0.99
    assert np.abs(one - other).max() > 1e-3


def test_other_light_models_are_refilled_too():
    model = models.light_model("squeezenet")
    (name,) = (i.name for i in model.graph.input)
    (result,) = session(model).run(None, {name: image()["data_0"]})
    assert np.isfinite(result).all()
    with pytest.raises(InputError, match=r"known: .*'squeezenet'"):
        models.light_model("lenet")


def test_summary_adds_up(googlenet):
    found = report(partition_for_tefuse(models.import_onnx(googlenet)))
    rows = left(found)
    assert sum(r.count for r in rows) + sum(r.ops for r in taken(found)) == len(found.ops)
    assert all(row.why for row in rows)


def test_kinds_of_a_pattern():
    dense = next(c for c in BUILTIN if c.name == "dense")
    assert kinds(dense.roots) == {
        "dense", "bias_add", "relu", "gelu", "add", "cast", "half_weight",
    }  # fmt: skip


def test_latency_takes_turns():
    order = []
    found = latency({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, windows=2)
    assert {name: f.windows <= 2 and f.milliseconds < 1 for name, f in found.items()} == {
        "a": True,
        "b": True,
    }
    turns = [name for i, name in enumerate(order) if i == 0 or order[i - 1] != name]
    assert turns[-4:] == ["a", "b", "a", "b"]


def test_missing_extra_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match="missing: pip install onnxruntime"):
        models.extra("onnxruntime")
    assert main(["demo"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("error: onnxruntime is missing: pip install onnxruntime ")
    assert message.count("\n") == 1


def test_explain_command(googlenet, tmp_path, capsys):
    path = tmp_path / "googlenet.onnx"
    onnx.save(googlenet, path)
    assert main(["explain", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "dense" in printed
    assert "Left to TVM" in printed


NO_MODEL = "is no ONNX model that can be read: "


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "cannot be read: No such file"), (b"", NO_MODEL), (b"no model \xff\xfe", NO_MODEL)],
)
def test_a_broken_model_file_gives_a_message(tmp_path, capsys, content, why):
    path = tmp_path / "broken.onnx"
    if content is not None:
        path.write_bytes(content)
    assert main(["explain", str(path)]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"error: {path} {why}")
    assert message.count("\n") == 1


def test_an_op_that_tvm_cannot_import_gives_a_message(tmp_path, capsys):
    make = onnx.helper
    value = [make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "xy"]
    node = make.make_node("Det", ["x"], ["y"])
    node.op_type, node.domain = "Unheard", "some.where"
    graph = make.make_graph([node], "g", value[:1], value[1:])
    opsets = [make.make_opsetid("", 13), make.make_opsetid("some.where", 1)]
    path = tmp_path / "unheard.onnx"
    onnx.save(make.make_model(graph, opset_imports=opsets, ir_version=8), path)
    assert main(["explain", str(path)]) == 1
    message = capsys.readouterr().err
    assert message.startswith(
        ("error: TVM's ONNX frontend cannot import unheard.onnx: ", "error: unheard.onnx: ")
    )
    assert "Unheard" in message


def test_composites_command(capsys):
    assert main(["composites"]) == 0
    printed = capsys.readouterr().out
    assert all(c.name in printed for c in BUILTIN)


def test_version_in_a_process_of_its_own():
    done = subprocess.run(
        [sys.executable, "-m", "selfbyoc", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("selfbyoc ")


@pytest.mark.skipif(GENERATION == "relay", reason="the demonstration's numbers are for Relax")
def test_demo_from_end_to_end(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pygraphviz")
    from selfbyoc.commands.demo import run

    monkeypatch.setattr(run, "latency", lambda runs: latency(runs, windows=1, budget=0.1))
    assert main(["demo", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for text in ("inception", "Left to TVM", "ONNX Runtime", "TVM's default build", "rounding"):
        assert text in printed
    assert "<svg" in (tmp_path / "googlenet.html").read_text(encoding="utf-8")
