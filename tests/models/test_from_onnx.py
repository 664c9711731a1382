"""`from_onnx`: what users' files hold, and what is wrong with some of them."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper as make
from onnx_models import model, value

import selfbyoc
from selfbyoc import from_onnx
from selfbyoc.errors import InputError, ModelWarning
from selfbyoc.models.onnx.folding import folded

runtime = pytest.importorskip("onnxruntime")
F = onnx.TensorProto.FLOAT


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def flattened(*sizes):
    """conv, relu and a dense layer, whose flattening computes its shape from the input's."""
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("Relu", ["c"], "r"),
        node("Shape", ["r"], "s"),
        node("Gather", ["s", "first"], "n", axis=0),
        node("Unsqueeze", ["n", "axes"], "n1"),
        node("Concat", ["n1", "rest"], "shape", axis=0),
        node("Reshape", ["r", "shape"], "flat"),
        node("MatMul", ["flat", "v"], "y"),
    ]
    small = {"first": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    return model(
        nodes, [value("x", F, *sizes)], [value("y", F, None, 7)],
        w=random(6, 3, 3, 3), v=random(6 * 6 * 6, 7), **small,
    )  # fmt: skip


def node(kind, inputs, output, **attrs):
    return kind, inputs, output, attrs


def kinds(proto):
    return [node.op_type for node in proto.graph.node]


def is_right(library, proto, *arrays):
    session = runtime.InferenceSession(proto.SerializeToString())
    given = dict(zip([i.name for i in session.get_inputs()], arrays, strict=True))
    for got, wanted in zip(library(*arrays), session.run(None, given), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    return True


def test_computed_shapes_are_constants():
    proto = flattened(2, 3, 8, 8)
    assert kinds(folded(proto)) == ["Conv", "Relu", "Reshape", "MatMul"]
    assert len(proto.graph.node) == 8, "the caller's model is as it was"
    library = selfbyoc.build(from_onnx(proto))
    assert library.report.counts
    assert is_right(library, proto, random(2, 3, 8, 8))


def test_a_shape_fixes_what_is_open(tmp_path):
    path = tmp_path / "open.onnx"
    onnx.save(flattened("batch", 3, "h", 8), path)
    mod = from_onnx(path, shapes={"x": (2, 3, 8, 8)})
    library = selfbyoc.build(mod)
    assert library.inputs == (("x", (2, 3, 8, 8), "float32"),)
    assert is_right(library, onnx.load(path), random(2, 3, 8, 8))


def test_a_symbol_has_one_size_in_all_inputs():
    nodes = [node("Add", ["x", "z"], "y")]
    proto = model(nodes, [value("x", F, "n", 5), value("z", F, "n", 5)], [value("y", F, "n", 5)])
    mod = from_onnx(proto, {"z": [3, 5]})
    library = selfbyoc.build(mod)
    assert [shape for _, shape, _ in library.inputs] == [(3, 5), (3, 5)]


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"y": (1,)}, "no input 'y'"),
        ({"x": (1, 3, 8)}, "x is batchx3xhx8, the shape given is 1x3x8"),
        ({"x": (1, 3, 0, 8)}, "sizes of 1 to 9223372036854775807 for x"),
        ({"x": (1, 3, 8.0, 8)}, "sizes of 1 to 9223372036854775807 for x"),
        ({"x": (1, 4, 8, 8)}, r"(?=.*the model)(?!.*Traceback).*(channel|4 does not)"),
    ],
)
def test_shapes_that_do_not_fit(shapes, text):
    with pytest.raises(InputError, match=text):
        from_onnx(flattened("batch", 3, "h", 8), shapes)


def test_weights_that_are_no_inputs_in_an_old_file(tmp_path):
    """Before IR version 4 an initializer had to be an input too; ONNX Runtime does not insist."""
    proto = flattened(2, 3, 8, 8)
    proto.ir_version = 3
    onnx.save(proto, tmp_path / "old.onnx")
    with pytest.warns(ModelWarning, match=r"old\.onnx: onnx's checker objects"):
        mod = from_onnx(tmp_path / "old.onnx")
    assert is_right(selfbyoc.build(mod), flattened(2, 3, 8, 8), random(2, 3, 8, 8))


def test_an_output_without_a_shape(tmp_path):
    proto = flattened(2, 3, 8, 8)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(proto, tmp_path / "bare.onnx")
    with pytest.warns(ModelWarning, match=r"bare\.onnx: onnx's checker objects"):
        mod = from_onnx(tmp_path / "bare.onnx")
    assert is_right(selfbyoc.build(mod), flattened(2, 3, 8, 8), random(2, 3, 8, 8))


def test_weights_in_a_file_of_their_own(tmp_path):
    proto, path = flattened(2, 3, 8, 8), tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=64)
    library = selfbyoc.build(from_onnx(path))
    assert is_right(library, flattened(2, 3, 8, 8), random(2, 3, 8, 8))
    (tmp_path / "w.bin").unlink()
    with pytest.raises(InputError, match=r"m\.onnx is no ONNX model that can be read"):
        from_onnx(path)


def test_an_op_of_somebodys_own_is_named():
    nodes = [node("Frobnicate", ["x"], "y", domain="acme")]
    proto = model(nodes, [value("x", F, 2, 3)], [value("y", F, 2, 3)])
    with pytest.raises(
        InputError, match=r"Frobnicate.*not folded by ONNX Runtime: .*does not open it"
    ):
        from_onnx(proto)


@pytest.mark.parametrize("kind", ["STRING", "COMPLEX64"])
def test_a_dtype_that_nobody_computes_with_is_named(kind):
    dtype = getattr(onnx.TensorProto, kind)
    proto = model([node("Identity", ["x"], "y")], [value("x", dtype, 2)], [value("y", dtype, 2)])
    with pytest.raises(InputError, match=rf"input 'x' is of {kind}; expected a tensor of numbers"):
        from_onnx(proto)


def test_a_sequence_is_no_tensor():
    made = onnx.helper.make_tensor_sequence_value_info("x", F, (2,))
    proto = model(
        [node("SequenceLength", ["x"], "y")], [made], [value("y", onnx.TensorProto.INT64)]
    )
    with pytest.raises(InputError, match="input 'x' is of sequence; expected a tensor"):
        from_onnx(proto)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("Frobnicate", ["x"], "y")], "No Op registered for Frobnicate"),
        ([node("Add", ["x", "nobody"], "y")], "nobody"),
        ([node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b"), node("Relu", ["b"], "y")], "'b'"),
    ],
    ids=["unknown op", "unknown input", "cycle"],
)
def test_a_graph_that_is_none(nodes, reason):
    proto = model(nodes, [value("x", F, 2)], [value("y", F, 2)])
    with pytest.raises(InputError, match=f"no ONNX model that can be read: .*{reason}"):
        from_onnx(proto)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04" * 9, b"\x08\x07", b"\x00" * 64, b"{}"])
def test_a_foreign_file(tmp_path, data):
    path = tmp_path / "foreign.onnx"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"foreign\.onnx is no ONNX model that can be read"):
        from_onnx(path)


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9, 0.999])
def test_a_truncated_file(tmp_path, part):
    data = flattened(2, 3, 8, 8).SerializeToString()
    (tmp_path / "cut.onnx").write_bytes(data[: int(len(data) * part)])
    with pytest.raises(InputError, match=r"cut\.onnx"):
        from_onnx(tmp_path / "cut.onnx")


@pytest.mark.parametrize("given", [None, 3, b"model", []])
def test_what_is_no_model(given):
    with pytest.raises(InputError, match=r"expected a path or an onnx\.ModelProto"):
        from_onnx(given)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        from_onnx(tmp_path / "none.onnx")


def test_weights_are_not_folded():
    """Only small constants: a transposed weight stays a Transpose of a weight."""
    nodes = [
        node("Transpose", ["w"], "t", perm=[1, 0]),
        node("MatMul", ["x", "t"], "y"),
    ]
    proto = model(nodes, [value("x", F, 2, 64)], [value("y", F, 2, 128)], w=random(128, 64))
    done = folded(proto)
    assert kinds(done) == ["Transpose", "MatMul"]
    assert [i.name for i in done.graph.input] == ["x"]
    assert is_right(selfbyoc.build(from_onnx(proto)), proto, random(2, 64))


def test_what_is_in_a_branch_stays():
    """Names and domains of inner graphs count."""
    inner = [
        make.make_graph(
            [make.make_node(kind, ["x", "w"], ["o"])], kind, [], [value("o", F, 70, 70)]
        )
        for kind in ("Add", "Mul")
    ]
    nodes = [node("If", ["c"], "y", then_branch=inner[0], else_branch=inner[1])]
    inputs = [value("x", F, 70, 70), value("c", onnx.TensorProto.BOOL)]
    done = folded(model(nodes, inputs, [value("y", F, 70, 70)], w=random(70, 70)))
    assert [t.name for t in done.graph.initializer] == ["w"]
    assert kinds(done) == ["If"]


def test_the_command_takes_a_shape(tmp_path):
    path = tmp_path / "open.onnx"
    onnx.save(flattened("batch", 3, "h", 8), path)
    command = [sys.executable, "-m", "selfbyoc", "explain", str(path), "--shape", "x=2x3x8x8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "dense" in done.stdout
