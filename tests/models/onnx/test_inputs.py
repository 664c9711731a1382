"""What ONNX files have as inputs that nobody gives, and what they call sizes that nobody knows."""

import re

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, dense, model, own, random, saved, value

import selfbyoc
from selfbyoc import from_onnx
from selfbyoc.__main__ import main
from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.commands.bench.lengths import length_workloads
from selfbyoc.errors import InputError, ModelWarning
from selfbyoc.models.dim_names import symbols_of
from selfbyoc.models.onnx_model import light_model
from selfbyoc.models.shapes import fix_shapes, give_shapes, give_sizes
from selfbyoc.models.sizes import Lengths
from selfbyoc.tvm import GENERATION

runtime = pytest.importorskip("onnxruntime")
relax_only = pytest.mark.skipif(GENERATION == "relay", reason="Relay's sizes have no names")


def wanted(proto, **given):
    session = runtime.InferenceSession(proto.SerializeToString())
    return session.run(None, given)


def old(proto):
    """As IR version 3 wants it: every initializer is an input too."""
    for tensor in proto.graph.initializer:
        proto.graph.input.append(value(tensor.name, tensor.data_type, *tensor.dims))
    proto.ir_version = 3
    onnx.checker.check_model(proto)
    return proto


def shuffled():
    """Channels shuffled twice as Caffe2 writes it: shapes are initializers, equal ones too."""
    nodes, shapes = [], {}
    for n in range(2):
        nodes += [
            ("Reshape", [f"x{n}", f"apart{n}"], f"five{n}", {}),
            ("Transpose", [f"five{n}"], f"turned{n}", {"perm": [0, 2, 1, 3, 4]}),
            ("Reshape", [f"turned{n}", f"together{n}"], f"x{n + 1}", {}),
        ]
        shapes |= {f"apart{n}": np.array([1, 2, 3, 3, 5]), f"together{n}": np.array([1, 6, 3, 5])}
    ends = [value("x0", FLOAT, 1, 6, 3, 5)], [value("x2", FLOAT, 1, 6, 3, 5)]
    return old(model(nodes, *ends, opset=9, **shapes))


# ---- initializers


def test_an_initializer_that_is_an_input_is_a_constant():
    proto, x = shuffled(), random(1, 6, 3, 5)
    library = selfbyoc.build(from_onnx(proto))
    assert library.inputs == (("x0", (1, 6, 3, 5), "float32"),)
    np.testing.assert_array_equal(library(x)[0], wanted(proto, x0=x)[0])
    assert len(proto.graph.input) == 5, "the caller's model is as it was"


def test_shufflenet_takes_an_image():
    mod = from_onnx(old(light_model("shufflenet")))
    assert len(mod["main"].params) == 1


def test_an_initializer_that_the_user_names_is_an_input():
    """Also one that the file does not list as such."""
    x, w = random(5, 24), random(24, 31)[::-1].copy()
    for proto in (old(dense()), dense()):
        library = selfbyoc.build(from_onnx(proto, inputs=["w"]))
        assert [name for name, _, _ in library.inputs] == ["x", "w"]
        np.testing.assert_allclose(library(x, w)[0], np.maximum(x @ w, 0), rtol=1e-5, atol=1e-5)
    for bad in (["v"], ["W"]):
        with pytest.raises(InputError, match=rf"inputs: no initializer '{bad[0]}' in the model"):
            from_onnx(dense(), inputs=bad)
    with pytest.raises(InputError, match="expected names of initializers, found the text 'w'"):
        from_onnx(dense(), inputs="w")


def test_sparse_initializers_are_no_inputs():
    proto = old(dense())
    values = numpy_helper.from_array(np.ones(1, "float32"), "s")
    place = numpy_helper.from_array(np.array([2]), "")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, place, [4]))
    proto.graph.input.append(value("s", FLOAT, 4))
    assert len(from_onnx(proto)["main"].params) == 1


def test_the_commands_take_an_input(tmp_path, capsys):
    path = str(saved(tmp_path / "m.onnx", old(dense())))
    assert main(["show", path]) == 0
    assert not re.search(r"\bw\b", capsys.readouterr().out)
    assert main(["show", path, "--input", "w"]) == 0
    assert re.search(r"\bw\b.*24.*31", capsys.readouterr().out)
    assert main(["explain", path, "--input", "v"]) == 1
    assert "error: inputs: no initializer 'v'" in capsys.readouterr().err
    assert main(["bench", "--input", "w"]) == 1
    assert "--input is of a MODEL.onnx" in capsys.readouterr().err
    (tmp_path / "m.json").write_text("{}")
    assert main(["bench", str(tmp_path / "m.json"), "--input", "w"]) == 1
    assert "--input: of ONNX models, and m.json is none" in capsys.readouterr().err


def test_the_benchmark_takes_an_input(tmp_path):
    path = saved(tmp_path / "m.onnx", old(dense()))
    found = own(path, inputs=["w"])
    assert found.name == "m input=w"
    assert list(inputs_of(found.model())) == ["x", "w"]
    assert [i.name for i in own(path).model().graph.input] == ["x"]
    with pytest.raises(InputError, match="no initializer 'v'"):
        own(path, inputs=["v"])


# ---- sizes without a name


def open_ones(*sizes, op="Add"):
    """Two inputs of the same rank."""
    ends = [value("x.1", FLOAT, *sizes), value("z", FLOAT, *sizes)]
    return model([(op, ["x.1", "z"], "y", {})], ends, [value("y", FLOAT, *sizes)])


NOBODYS = ["?", "", "None", "-1", "unk__7", "DynamicDimension.2", "p2o.DynamicDimension.0"]


@pytest.mark.parametrize("name", NOBODYS)
def test_a_placeholder_is_as_many_sizes_as_places(name):
    proto = give_shapes(open_ones(name, 3, name), {}, "m")
    assert symbols_of(proto) == ["x_1_0", "x_1_2", "z_0", "z_2"]
    found = fix_shapes(open_ones(name, 3, name), {"x.1": (1, 3, 48), "z": (2, 3, 1)}, "m")
    assert {n: a.shape for n, a in inputs_of(found).items()} == {"x.1": (1, 3, 48), "z": (2, 3, 1)}


def test_a_negative_size_is_open():
    proto = open_ones(2, 3)
    for each in proto.graph.input:
        each.type.tensor_type.shape.dim[0].dim_value = -1
    assert symbols_of(give_shapes(proto, {}, "m")) == ["x_1_0", "z_0"]


def test_names_that_are_made_up_are_nobody_elses():
    proto = open_ones("?", "z_0")
    assert symbols_of(give_shapes(proto, {}, "m")) == ["x_1_0", "z_0", "z_0_"]


def test_a_number_as_a_name_is_that_size():
    made = give_shapes(open_ones("n", "640"), {}, "m")
    assert [d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim] == [0, 640]
    assert symbols_of(made) == ["n"]


def test_what_the_file_says_of_placeholders_is_forgotten():
    """ONNX Runtime would take the two `?` of a matrix for equal, and fold what compares them."""
    made = give_shapes(open_ones("?", "rows", "?"), {}, "m")
    dims = made.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == ["", "rows", ""]


def test_a_shape_fixes_a_file_of_paddle(tmp_path):
    """Every open size is `?` there; a Concat needs other sizes for each input."""
    nodes = [("Concat", ["x", "z"], "y", {"axis": 0})]
    ends = [value("x", FLOAT, "?", 3, "?"), value("z", FLOAT, "?", 3, "?")]
    proto = model(nodes, ends, [value("y", FLOAT, "?", 3, "?")])
    shapes = {"x": (1, 3, 48), "z": (5, 3, 48)}
    library = selfbyoc.build(from_onnx(proto, shapes))
    given = {name: random(*shape) for name, shape in shapes.items()}
    np.testing.assert_array_equal(library(*given.values())[0], wanted(proto, **given)[0])
    path = str(saved(tmp_path / "m.onnx", proto))
    assert main(["show", path, "--shape", "x=1x3x48", "--shape", "z=5x3x48"]) == 0
    found = own(tmp_path / "m.onnx", "x=1x3x48", "z=5x3x48").model()
    assert [a.shape for a in inputs_of(found).values()] == list(shapes.values())


@relax_only
def test_open_placeholders_are_symbols_of_their_own():
    nodes = [("Relu", ["x"], "a", {}), ("Abs", ["z"], "b", {})]
    ends = [value("x", FLOAT, "?", 3), value("z", FLOAT, "?", 3)]
    proto = model(nodes, ends, [value("a", FLOAT, "?", 3), value("b", FLOAT, "?", 3)])
    library = selfbyoc.build(from_onnx(proto))
    assert library.sizes.keys() == {"x_0", "z_0"}
    x, z = random(2, 3), -random(5, 3)
    a, b = library(x, z)
    np.testing.assert_array_equal(a, np.maximum(x, 0))
    np.testing.assert_array_equal(b, np.abs(z))


def test_equal_names_of_other_sizes_are_told_once(tmp_path):
    proto = open_ones("batch", "n")
    with pytest.warns(
        ModelWarning, match=r"batch is given as 4 in input x\.1 and 1 in input z"
    ) as told:
        mod = from_onnx(proto, {"x.1": (4, 3), "z": (1, 3)})
    assert sum(w.category is ModelWarning for w in told) == 1
    library = selfbyoc.build(mod)
    x, z = random(4, 3), random(1, 3)
    np.testing.assert_array_equal(library(x, z)[0], x + z)
    path = str(saved(tmp_path / "m.onnx", proto))
    with pytest.warns(ModelWarning, match=r"m\.onnx: batch is given") as told:
        assert main(["show", path, "--shape", "x.1=4x3", "--shape", "z=1x3"]) == 0
    assert sum(w.category is ModelWarning for w in told) == 1


def test_a_size_that_is_given_twice_stays_open_elsewhere():
    ends = [value(name, FLOAT, "n") for name in "abc"]
    nodes = [("Add", ["a", "b"], "d", {}), ("Add", ["d", "c"], "y", {})]
    proto = model(nodes, ends, [value("y", FLOAT, None)])
    with pytest.warns(ModelWarning, match="n is given as 1 in input a and 5 in input b"):
        made = give_shapes(proto, {"a": (1,), "b": (5,)}, "m")
    assert symbols_of(made) == ["n"]


# ---- sizes that follow from others


def cached():
    """What is past, and a mask of one place more, as a decoder is exported."""
    sizes = {"past": ("batch-size", "past"), "mask": ("batch-size", "past + 1")}
    nodes = [("Relu", ["past"], "y", {}), ("Abs", ["mask"], "z", {})]
    ends = [value(name, FLOAT, *of) for name, of in sizes.items()]
    return model(nodes, ends, [value("y", FLOAT, None, None), value("z", FLOAT, None, None)])


def test_a_name_that_is_computed_follows():
    made = fix_shapes(cached(), {"past": (2, 7)}, "m")
    assert [a.shape for a in inputs_of(made).values()] == [(2, 7), (2, 8)]
    assert symbols_of(cached()) == ["batch-size", "past"]
    ends = [value("a", FLOAT, "p"), value("b", FLOAT, "s"), value("c", FLOAT, "p + s*2")]
    proto = model([("Relu", ["c"], "y", {})], ends, [value("y", FLOAT, None)])
    some = give_sizes(proto, {"s": 3})
    assert [d.dim_param for d in some.graph.input[2].type.tensor_type.shape.dim] == ["p + 3 * 2"]
    both = give_sizes(some, {"p": 4})
    assert inputs_of(both)["c"].shape == (10,)


@relax_only
def test_a_name_with_a_dash_is_one_name():
    library = selfbyoc.build(from_onnx(cached()))
    assert {"batch_size", "past"} <= library.sizes.keys()
    for batch, past in ((1, 4), (3, 9)):
        x, mask = random(batch, past), random(batch, past + 1)
        y, z = library(x, mask)
        np.testing.assert_array_equal(y, np.maximum(x, 0))
        np.testing.assert_array_equal(z, np.abs(mask))


@relax_only
def test_lengths_of_a_size_without_a_name(tmp_path):
    ends = [value("x", FLOAT, "?", 24)], [value("y", FLOAT, "?", 31)]
    nodes = [("MatMul", ["x", "w"], "y", {})]
    path = saved(tmp_path / "m.onnx", model(nodes, *ends, w=random(24, 31)))
    (found,) = length_workloads(path, Lengths("", (3,)), {}, (), tmp_path)
    assert found.name == "m x_0=3"
    assert inputs_of(found.model())["x"].shape == (3, 24)
