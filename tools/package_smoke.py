"""What `tools/package.py` runs in the new environment: a model to a file, the file to numbers."""

from __future__ import annotations

import subprocess
from importlib.metadata import entry_points, version
from importlib.resources import files

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import selfbyoc


def model() -> tuple[onnx.ModelProto, np.ndarray]:
    """softmax(x @ weight) with an open batch, and the weight."""
    weight = np.random.default_rng(0).standard_normal((64, 10), np.float32)
    make = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "weight"], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["y"]),
        ],
        "smoke",
        [make("x", TensorProto.FLOAT, ("batch", 64))],
        [make("y", TensorProto.FLOAT, ("batch", 10))],
        [numpy_helper.from_array(weight, "weight")],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8), weight


def command(*given: str) -> str:
    """`selfbyoc ...`, as a user types it."""
    print("$ selfbyoc", *given)
    printed = subprocess.run(
        ["selfbyoc", *given], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    print(printed.rstrip())
    return printed


def main() -> None:
    """Raises where anything is not as the documents say."""
    assert "site-packages" in str(selfbyoc.__file__), selfbyoc.__file__
    assert command("--version").split() == ["selfbyoc", version("selfbyoc")]
    for name in (
        "py.typed",
        "language/typed_ops.pyi",
        "commands/page/page.html",
        "commands/page/page.css",
        "commands/page/page.js",
    ):
        assert files("selfbyoc").joinpath(name).is_file(), name
    assert "selfbyoc" in entry_points(group="torch_dynamo_backends").names

    made, weight = model()
    onnx.save(made, "model.onnx")
    command("compile", "model.onnx", "-o", "model.so", "--shape", "x=4x64")
    assert "4x10" in command("show", "model.so").replace(", ", "x")
    x = np.random.default_rng(1).standard_normal((4, 64), np.float32)
    np.save("x.npy", x)
    command("run", "model.so", "--input", "x=x.npy", "--output", ".")

    scores = np.exp(x @ weight)
    expected = scores / scores.sum(1, keepdims=True)
    np.testing.assert_allclose(np.load("y.npy"), expected, rtol=1e-4, atol=1e-6)
    (found,) = selfbyoc.load("model.so")(x=x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    print("the numbers are NumPy's")


if __name__ == "__main__":
    main()
