"""Activations that read their value twice, as exporters spell them: part of the kernel before."""

import numpy as np
import pytest

import selfbyoc

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

C = 24
NUMBERS = {"three": 3.0, "six": 6.0, "zero": 0.0, "sixth": 1 / 6, "half": 0.5, "one": 1.0}
RELU6 = (("Add", "y three", "a"), ("Clip", "a zero six", "c"))
# Nodes: op, inputs, output.
SPELLINGS = {
    "HardSwish": (("HardSwish", "y", "z"),),
    "gate last": (*RELU6, ("Div", "c six", "g"), ("Mul", "y g", "z")),
    "constant last": (*RELU6, ("Mul", "c y", "g"), ("Div", "g six", "z")),
    "constant first": (*RELU6, ("Mul", "sixth y", "g"), ("Mul", "g c", "z")),
    "clip of a share": (
        ("Mul", "y sixth", "a"), ("Add", "a half", "h"), ("Clip", "h zero one", "c"),
        ("Mul", "y c", "z"),
    ),
    "min of max": (
        ("Add", "three y", "a"), ("Max", "a zero", "l"), ("Min", "l six", "c"),
        ("Mul", "y c", "g"), ("Div", "g six", "z"),
    ),
    "silu": (("Sigmoid", "y", "g"), ("Mul", "g y", "z")),
    "silu by exp": (
        ("Neg", "y", "n"), ("Exp", "n", "e"), ("Add", "one e", "d"), ("Div", "y d", "z"),
    ),
}  # fmt: skip


def model(spelling):
    """A depthwise convolution of 7x7 pixels, its batch norm, and the activation."""
    rng = np.random.default_rng(0)
    weights = {name: rng.random(C).astype("float32") + 0.5 for name in ("s", "v")}
    weights |= {name: rng.standard_normal(C).astype("float32") for name in ("b", "m")}
    weights["w"] = rng.standard_normal((C, 1, 3, 3)).astype("float32")
    weights |= {name: np.float32(value) for name, value in NUMBERS.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["p"], pads=[1] * 4, group=C),
        helper.make_node("BatchNormalization", ["p", "s", "b", "m", "v"], ["y"]),
        *(helper.make_node(op, read.split(), [made]) for op, read, made in SPELLINGS[spelling]),
    ]
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "activation",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, C, 7, 7))],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, (1, C, 7, 7))],
        [numpy_helper.from_array(a, name) for name, a in weights.items() if name in read],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_value_that_is_read_twice_stays_in_the_kernel(spelling):
    proto = model(spelling)
    library = selfbyoc.build(selfbyoc.from_onnx(proto))
    assert library.report.left == {}
    assert sum(library.report.counts.values()) == 1
    x = np.random.default_rng(1).standard_normal((1, C, 7, 7)).astype("float32")
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    (found,) = library(x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
