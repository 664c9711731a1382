"""`bench MODEL.onnx`: a user's files, their shapes and their inputs."""

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto
from onnx_models import FLOAT, dense, model, own, saved, sentence, value

from selfbyoc.__main__ import main
from selfbyoc.commands.bench.checking import expectation
from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.commands.bench.own import OWN, own_workloads
from selfbyoc.commands.bench.process import Failed, Process
from selfbyoc.commands.bench.setting import make_setting
from selfbyoc.errors import InputError, ModelWarning
from selfbyoc.models.shapes import fix_shapes, parse_shapes

# ---- shapes


def test_a_symbol_has_one_size(tmp_path):
    """What fixes `batch` and `length` in one input fixes them in all, and in the output."""
    found = own(saved(tmp_path / "m.onnx", sentence()), "mask=2x7")
    assert (found.name, found.group) == ("m mask=2x7", OWN)
    made = found.model()
    assert [a.shape for a in inputs_of(made).values()] == [(2, 7)] * 3
    (out,) = made.graph.output
    assert [d.dim_value for d in out.type.tensor_type.shape.dim] == [2, 7, 31]


def test_a_known_size_can_be_changed(tmp_path):
    made = own(saved(tmp_path / "m.onnx", dense()), "x=9x24").model()
    assert inputs_of(made)["x"].shape == (9, 24)
    assert [d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [9, 31]


def test_open_sizes_are_refused_with_what_to_write():
    with pytest.raises(InputError, match=r"input input\.ids is batchxlength.*input\.ids=1x1'"):
        fix_shapes(sentence(), {}, "m")
    unknown = dense()
    unknown.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(InputError, match=r"shape of input x is not known; fix it.*--shape 'x="):
        fix_shapes(unknown, {}, "m")
    assert inputs_of(fix_shapes(unknown, {"x": (5, 24)}, "m"))["x"].shape == (5, 24)


@pytest.mark.parametrize("text", ["x", "=1x2", "x=", "x=1x-2", "x=1x0", "x=1xa"])
def test_a_shape_is_a_name_and_sizes(text):
    with pytest.raises(InputError, match="expected NAME=1x3x224x224"):
        parse_shapes([text])


def test_shapes_must_fit(tmp_path):
    path = saved(tmp_path / "m.onnx", sentence())
    assert parse_shapes(["a=b:0=2x3"]) == {"a=b:0": (2, 3)}
    with pytest.raises(InputError, match="input x has two shapes"):
        parse_shapes(["x=1", "x=2"])
    with pytest.raises(InputError, match=r"no input 'masks'; known: .*did you mean 'mask'"):
        own(path, "masks=1x2")
    with pytest.raises(InputError, match="mask is batchxlength, the shape given is 1x2x3"):
        own(path, "mask=1x2x3")
    with (
        pytest.warns(ModelWarning, match="length is given as 3 in input token_type and 4 in inp"),
        pytest.raises(InputError, match=r"input\.ids is 1xlength, with open sizes"),
    ):
        own(path, "token_type=1x3", "mask=1x4")


# ---- inputs


def test_integers_mean_something():
    made = fix_shapes(sentence(), {"mask": (4, 30)}, "m")
    found, again = inputs_of(made), inputs_of(made)
    np.testing.assert_array_equal(found["input.ids"], again["input.ids"])
    assert 40 < found["input.ids"].max() < 50
    assert set(found["token_type"].flat) == {0, 1}  # through a cast
    assert set(found["mask"].flat) == {1}
    assert {a.dtype for a in found.values()} == {np.dtype("int64")}


def test_bytes_take_all_values():
    pixels = model(
        [("Cast", ["x"], "y", {"to": FLOAT})], [value("x", TensorProto.UINT8, 50, 50)],
        [value("y", FLOAT, 50, 50)],
    )  # fmt: skip
    found = inputs_of(pixels)["x"]
    assert (found.dtype, found.min(), found.max()) == (np.uint8, 0, 255)


def test_weights_that_are_inputs_stay_weights(tmp_path):
    """As files before ONNX 1.5 have them."""
    old = dense(opset=11, ir=3)
    old.graph.input.insert(0, value("w", FLOAT, 24, 31))
    made = own(saved(tmp_path / "m.onnx", old)).model()
    assert list(inputs_of(made)) == ["x"]
    onnx.checker.check_model(made)


# ---- files


def test_files_are_read_before_anything_runs(tmp_path, capsys):
    good, junk = saved(tmp_path / "m.onnx", dense()), tmp_path / "junk.onnx"
    junk.write_text("junk")
    refused = {
        tmp_path / "none.onnx": "cannot be read: No such",
        junk: "is no ONNX model that can be read",
        tmp_path: "cannot be read: Is a directory",
    }
    for bad, said in refused.items():
        assert main(["bench", str(good), str(bad)]) == 1
        error = capsys.readouterr().err
        assert f"error: {bad} {said}" in error
        assert error.count("\n") == 1


def test_a_file_that_ends_onnx_runtime(tmp_path):
    """1.32 aborts at a Slice of an axis of -1: in a process of its own."""
    nodes = [("Pad", ["x", "pads"], "part", {}), ("Slice", ["part", "one", "six"], "y", {})]
    numbers = {"pads": np.array([-2, 0, -1, 0]), "one": np.array([1]), "six": np.array([6])}
    proto = model(nodes, [value("x", FLOAT, 2, 3)], [value("y", FLOAT, "a", 3)], **numbers)
    path = saved(tmp_path / "m.onnx", proto)
    given = {"x": np.ones((2, 3), "float32")}
    found = expectation(own(path), proto, str(path), given, terms=1, limit=60)
    assert found.outputs is None
    assert found.unknown.startswith("not checked: ")
    process = Process("onnxruntime", 1)
    try:
        with pytest.raises(Failed):
            process.ask("built", str(path), given, make_setting(1))
    finally:
        process.close()


def test_names_tell_files_apart(tmp_path):
    (tmp_path / "a").mkdir()
    one, other = saved(tmp_path / "m.onnx", dense()), saved(tmp_path / "a" / "m.onnx", dense(7))
    found = own_workloads([one, other])
    assert [w.name for w in found] == [str(one), str(other)]
    assert found[0].key != found[1].key
    assert own(one).key == found[0].key
    with pytest.raises(InputError, match="given twice"):
        own_workloads([one, one])


def test_texts_cannot_be_made_up(tmp_path):
    kind = TensorProto.STRING
    ends = [value("x", kind, 2)], [value("y", kind, 2)]
    path = saved(tmp_path / "m.onnx", model([("Identity", ["x"], "y", {})], *ends))
    with pytest.raises(InputError, match="input x is of type STRING, expected numbers"):
        own(path)
