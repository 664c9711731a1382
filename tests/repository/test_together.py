"""`tools/together.py`: several processes and libraries are built, and all are called."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))
together = importlib.import_module("together")


def test_everybody_is_called(tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = np.random.default_rng(0).standard_normal((5, 7)).astype("float32")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", kind, [3, 5])],
        [helper.make_tensor_value_info("y", kind, [3, 7])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    path = tmp_path / "model.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    monkeypatch.setattr(together, "TURNS", 1)
    for asked in (together.Arrangement(2, 1, 1), together.Arrangement(1, 2, 1)):
        found = together.rates(path, ["selfbyoc"], asked, 0.05)
        assert found["selfbyoc"] > 0


def test_a_row_says_who_is_ahead():
    found = {"selfbyoc": 30.0, "onnxruntime": 20.0, "openvino": 24.0}
    told = together.row(together.Arrangement(2, 1, 1), found)
    assert told == "| 2 x 1 x 1 | 30.0 | 20.0 | 24.0 | 1.25 |"


def test_all_arrangements_fit_two_cores():
    assert all(a.threads <= 2 for a in together.ARRANGEMENTS)
    assert len(set(together.ARRANGEMENTS)) == len(together.ARRANGEMENTS)
