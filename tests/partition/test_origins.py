"""Names of the source model, kept through import and partitioning on both generations."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.tvm import GENERATION

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402 (needs onnx)

F = onnx.TensorProto.FLOAT


def onnx_file():
    """A convolution with a bias, GELU spelled out, and a dense layer of three TVM ops."""
    rng = np.random.default_rng(0)
    arrays = {"w": (4, 3, 3, 3), "b": (4,), "v": (4, 5), "c": (5,)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["y"], name="features.0/conv", pads=[1] * 4),
        helper.make_node("Relu", ["y"], ["z"]),  # no name: it goes by its output
        helper.make_node("GlobalAveragePool", ["z"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "v", "c"], ["out"], name="head <b>"),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", F, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("out", F, [1, 5])],
        [
            onnx.numpy_helper.from_array(rng.standard_normal(s).astype("float32"), n)
            for n, s in arrays.items()
        ],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_nodes_of_onnx():
    mod = selfbyoc.from_onnx(onnx_file())
    for found in (
        selfbyoc.explain(mod).report,
        selfbyoc.report(selfbyoc.partition_for_tefuse(mod)),
    ):
        told = dict(found.origins)
        assert told["conv2d"] == told["bias_add"] == "features.0/conv"
        assert told["relu"] == ("z" if GENERATION == "relax" else "Relu_0")
        assert told["global_avg_pool2d"] == "pool"
        assert told["dense"] == "head <b>"
        assert set(told) == {name for name, _, _ in found.ops}


def test_what_was_written_without_names_has_none():
    program = selfbyoc.emit(lambda x: selfbyoc.op.relu(x), {"x": (3,)})
    assert selfbyoc.explain(program).report.origins == ()


def test_modules_of_pytorch():
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList([torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)])

        def forward(self, x):
            return torch.tanh(self.blocks[1](torch.relu(self.blocks[0](x))))

    mod = selfbyoc.from_torch(Network().eval(), (torch.ones(3, 4),))
    told = dict(selfbyoc.explain(mod).report.origins)
    if GENERATION == "relax":
        assert told["dense"] == told["bias_add"] == "blocks.0"
        assert told["bias_add_1"] == "blocks.1"
        assert told["tanh"] == "tanh"
    else:
        assert "blocks" in told["dense"] or told["dense"].startswith("aten::")


def test_names_are_no_part_of_a_kernel():
    """Two convolutions of other names are one function, as before there were names."""
    proto = onnx_file()
    del proto.graph.node[1:]
    again = helper.make_node("Conv", ["y", "u", "b"], ["out"], name="other", pads=[1] * 4)
    proto.graph.node.append(again)
    weight = np.ones((4, 4, 3, 3), "float32")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "u"))
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    proto.graph.output[0].type.CopyFrom(proto.graph.input[0].type)
    for kept in [i for i in proto.graph.initializer if i.name in ("v", "c")]:
        proto.graph.initializer.remove(kept)
    parted = selfbyoc.partition_for_tefuse(selfbyoc.from_onnx(proto))
    found = selfbyoc.melting(parted).kernels
    assert sum(kernel.count for kernel in found) == 2
    assert len(found) == 1
