"""`tools/exactness.py`: levels of the real numbers, and who differs from them."""

import numpy as np
import pytest
from scripts import tool

from selfbyoc.tvm import GENERATION

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(GENERATION == "relay", reason="Relay rounds halves away from zero")
exactness = tool("exactness")


def quantised(weight):
    """DequantizeLinear, Conv, Relu, QuantizeLinear; twice, the second one of the first one's."""
    make, array = onnx.helper.make_node, onnx.numpy_helper.from_array
    scales = {"s0": 0.02, "s1": 3.0, "s2": 40.0, "ws": 0.01}
    constants = [array(np.array(v, "float32"), name) for name, v in scales.items()]
    constants += [array(np.array(v, "uint8"), name) for name, v in {"z0": 7, "z1": 0}.items()]
    constants += [array(np.array(0, "int8"), "wz"), array(weight, "w")]
    nodes = [make("QuantizeLinear", ["x", "s0", "z0"], ["q0"])]
    for n, before in ((1, "q0"), (2, "q1")):
        last = ("s0", "z0") if n == 1 else ("s1", "z1")
        nodes += [
            make("DequantizeLinear", [before, *last], [f"d{n}"]),
            make("DequantizeLinear", ["w", "ws", "wz"], [f"w{n}"]),
            make("Conv", [f"d{n}", f"w{n}"], [f"y{n}"], pads=[1, 1, 1, 1]),
            make("Relu", [f"y{n}"], [f"r{n}"]),
            make("QuantizeLinear", [f"r{n}", f"s{n}", "z1"], [f"q{n}"]),
        ]
    nodes.append(make("DequantizeLinear", ["q2", "s2", "z1"], ["out"]))
    shape = (1, weight.shape[1], 9, 10)
    float_ = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        "levels",
        [onnx.helper.make_tensor_value_info("x", float_, shape)],
        [onnx.helper.make_tensor_value_info("out", float_, shape)],
        constants,
    )
    opset = [onnx.helper.make_opsetid("", 13)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)


def test_layers_are_compared_with_the_real_numbers(tmp_path):
    weight = np.random.default_rng(0).integers(-127, 128, (16, 16, 3, 3)).astype("int8")
    onnx.save(quantised(weight), tmp_path / "levels.onnx")
    found = exactness.compared(tmp_path / "levels.onnx")
    assert (found.layers, found.levels) == (2, 2 * 16 * 90)
    ours = found.by_name["ours"]
    assert ours.most <= 1
    assert ours.count <= 2  # near a half
    assert found.by_name["definition in float32"].most <= 1
    report = exactness.markdown([found])
    assert report.count("\n") == 2
    assert "| levels | 2 | 2,880 |" in report


def test_a_runtime_that_is_off_is_told():
    levels = np.array([3, 250, 7], "uint8")
    differences = exactness.Differences()
    differences.add(levels, levels)
    differences.add(np.array([3, 0, 8], "uint8"), levels)
    assert (differences.count, differences.most, differences.layers) == (2, 250, 1)
