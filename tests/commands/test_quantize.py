"""`selfbyoc quantize`: what it writes is levels from end to end, near what it was made of."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import selfbyoc
from selfbyoc.__main__ import main
from selfbyoc.commands.bench.levels import near
from selfbyoc.errors import InputError
from selfbyoc.models.batches import batches_in

pytest.importorskip("onnxruntime.quantization")
F32 = np.float32


def network(opset=17, size=12):
    """Two convolutions, a batch norm, and a dense layer over the mean of each channel."""
    rng, n = np.random.default_rng(0), helper.make_node
    nodes = [
        n("Conv", ["x", "w1"], ["c"], name="first", pads=[1] * 4),
        n("BatchNormalization", ["c", "g", "b", "m", "v"], ["d"], name="norm"),
        n("Relu", ["d"], ["r"], name="relu"),
        n("Conv", ["r", "w2", "b"], ["e"], name="second", pads=[1] * 4),
        n("GlobalAveragePool", ["e"], ["p"], name="pool"),
        n("Flatten", ["p"], ["f"], name="flat"),
        n("Gemm", ["f", "w3", "b3"], ["y"], name="head", transB=1),
    ]
    values = {
        "w1": rng.standard_normal((8, 3, 3, 3)) / 5, "w2": rng.standard_normal((8, 8, 3, 3)) / 8,
        "w3": rng.standard_normal((10, 8)), "b3": rng.standard_normal(10),
        **{name: rng.uniform(0.5, 1, 8) for name in "gbmv"},
    }  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", 3, size, size))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", 10))
    arrays = [numpy_helper.from_array(a.astype(F32), name) for name, a in values.items()]
    graph = helper.make_graph(nodes, "network", [x], [y], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """In a folder of its own, with data beside it."""
    monkeypatch.chdir(tmp_path)
    onnx.save(network(), "net.onnx")
    rng, folder = np.random.default_rng(1), Path("data")
    folder.mkdir()
    for n in range(6):
        np.savez(folder / f"{n}.npz", x=rng.standard_normal((2, 3, 12, 12)).astype(F32))
    return "net.onnx"


def test_a_model_in_levels(model, capsys):
    assert main(["quantize", model, "--data", "data"]) == 0
    said = capsys.readouterr().out
    assert "3 of 3 products in levels" in said
    assert "wrote net.int8.onnx" in said
    assert "times as fast" in said
    batch = batches_in(Path("data"), onnx.load(model))[0]
    exact, levels = (
        selfbyoc.build(selfbyoc.from_onnx(file, {"x": (2, 3, 12, 12)}))
        for file in (model, "net.int8.onnx")
    )
    assert levels.report.counts["conv2d_int8"] == 2
    assert levels.report.counts["dense_int8"] == 1
    (wanted,), (found,) = exact(batch), levels(batch)
    assert 0 < np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()
    # The batch stays open.
    (image,) = onnx.load("net.int8.onnx").graph.input
    assert image.type.tensor_type.shape.dim[0].dim_param == "batch"


def test_a_node_in_float(model, capsys):
    asked = ["quantize", model, "--data", "data", "--no-build", "-o", "out.onnx"]
    assert main([*asked, "--float", "second"]) == 0
    assert "2 of 3 products in levels" in capsys.readouterr().out
    weights = {n.name: n.input[1] for n in onnx.load("out.onnx").graph.node if n.op_type == "Conv"}
    assert weights["second"] == "w2"


@pytest.mark.parametrize("calibration", ["entropy", "percentile"])
def test_other_calibrations(model, calibration):
    asked = ["quantize", model, "--data", "data", "--no-build", "--calibration", calibration]
    assert main(asked) == 0
    assert {n.op_type for n in onnx.load("net.int8.onnx").graph.node} > {"QuantizeLinear", "Conv"}


@pytest.mark.parametrize(
    "how", [["--data", "data"], ["--dynamic", "--random", "2", "--shape", "x=1x3x12x12"]]
)
def test_weights_of_seven_bits(model, how):
    asked = ["quantize", model, *how, "--no-build"]
    largest = []
    for more in ([], ["--seven-bits"]):
        assert main([*asked, *more]) == 0
        weights = [
            numpy_helper.to_array(each).astype(int)
            for each in onnx.load("net.int8.onnx").graph.initializer
            if each.data_type == TensorProto.INT8 and len(each.dims) > 1
        ]
        largest.append(max(np.abs(w).max() for w in weights))
    assert 64 < largest[0] <= 128
    assert largest[1] in (63, 64)


def test_dynamic_and_made_up(model, capsys):
    assert main(["quantize", model, "--dynamic", "--random", "2", "--shape", "x=1x3x12x12"]) == 0
    said = capsys.readouterr().out
    assert "1 of 3 products in levels" in said
    assert "on 2 made-up inputs" in said


def test_an_old_opset(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = network(opset=11)
    flat = next(node for node in found.graph.node if node.op_type == "Flatten")
    flat.CopyFrom(helper.make_node("Reshape", ["p", "shape"], ["f"], name="flat"))
    # A shape that the quantiser must be able to read.
    found.graph.initializer.append(numpy_helper.from_array(np.array([-1, 8]), "shape"))
    onnx.save(found, "old.onnx")
    asked = ["quantize", "old.onnx", "--random", "2", "--shape", "x=1x3x12x12", "--no-build"]
    assert main(asked) == 0
    assert "3 of 3" in capsys.readouterr().out


RANDOM = ["--random", "1", "--shape", "x=1x3x12x12", "--no-build"]
BAD = {
    "open sizes": (["--random", "1"], "input x"),
    "a node that is not there": ([*RANDOM, "--float", "secnd"], "did you mean 'second'"),
    "a node that is gone": ([*RANDOM, "--float", "norm"], "'norm' becomes part of another"),
    "the model itself": ([*RANDOM, "-o", "net.onnx"], "it is net.onnx, which is read for it"),
    "no folder": (["--data", "nowhere"], "nowhere is no folder"),
    "shapes of data": (["--data", "data", "--shape", "x=1x3x12x12"], "those of --data"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_user_may_get_wrong(model, name, capsys):
    options, text = BAD[name]
    assert main(["quantize", model, *options]) == 1
    assert text in " ".join(capsys.readouterr().err.split())
    assert not Path("net.int8.onnx").exists()


@pytest.mark.parametrize("levels", [True, False])
def test_nothing_to_quantise(model, levels, capsys):
    graph = network().graph
    if levels:
        main(["quantize", model, *RANDOM, "-o", "twice.onnx"])
    else:
        del graph.node[:], graph.output[:]
        graph.node.append(helper.make_node("Relu", ["x"], ["y"], name="relu"))
        shape = ("batch", 3, 12, 12)
        graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, shape))
        del graph.initializer[:]
        onnx.save(helper.make_model(graph, ir_version=8), "twice.onnx")
    assert main(["quantize", "twice.onnx", *RANDOM]) == 1
    text = "is quantised already: it has" if levels else "nothing is quantised: it has no Conv"
    assert text in " ".join(capsys.readouterr().err.split())


DATA = {
    "another name": (
        {"images": np.ones((2, 3, 12, 12), F32)},
        "an array for input 'x', found images",
    ),
    "another dtype": ({"x": np.ones((2, 3, 12, 12))}, "found float64[2, 3, 12, 12]"),
    "another size": ({"x": np.ones((2, 3, 12, 13), F32)}, "expected float32[dynamic, 3, 12, 12]"),
    "fewer axes": ({"x": np.ones((3, 12, 12), F32)}, "found float32[3, 12, 12]"),
}


@pytest.mark.parametrize("name", DATA)
def test_data_that_does_not_fit(tmp_path, name):
    arrays, text = DATA[name]
    np.savez(tmp_path / "0.npz", **arrays)
    with pytest.raises(InputError) as err:
        batches_in(tmp_path, network())
    assert text in str(err.value)
    assert "0.npz" in str(err.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(InputError, match=r"has no \.npz"):
        batches_in(tmp_path, network())
    np.save(tmp_path / "0.npy", np.ones((1, 3, 12, 12), F32))
    assert batches_in(tmp_path, network())[0]["x"].shape == (1, 3, 12, 12)
    (tmp_path / "0.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match="cannot be read"):
        batches_in(tmp_path, network())


def test_how_near():
    exact, other = np.array([[1.0, 2.0], [4.0, 2.0]]), np.array([[1.0, 2.0], [4.4, 2.0]])
    found = near("y", [(exact, other), (exact, exact[:, ::-1])])
    assert found.largest == pytest.approx(2 / 4)
    assert found.same == pytest.approx(2 / 4)
    noise = 0.4**2 + 1 + 1 + 4 + 4
    assert found.decibels == pytest.approx(10 * np.log10(50 / noise))
    assert near("y", [(exact, exact)]).decibels == np.inf
    assert near("y", [(np.ones(3), np.ones(3))]).same is None
