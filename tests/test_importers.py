"""One composite matches the same network from every importer: ONNX, PyTorch, and the generation's
own IR.
"""

import numpy as np
import pytest
from models import COUNTS, data, onnx_model, program, weights

import selfbyoc
from selfbyoc._tvm import GENERATION
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition_ir
from selfbyoc.runtime.numpy_ops import evaluate


def by_hand():
    constants = weights()
    args = {
        "x": (data().shape, "float32"),
        **{n: (a.shape, "float32") for n, a in constants.items()},
    }
    return emit(program, args, constants)


def from_onnx():
    pytest.importorskip("onnx", reason="the onnx extra is not installed")
    if GENERATION == "relax":
        from tvm.relax.frontend.onnx import from_onnx as importer

        return importer(onnx_model(), keep_params_in_input=False)
    from tvm import relay

    mod, params = relay.frontend.from_onnx(onnx_model(), {"x": data().shape})
    return partition_ir.prepare(mod, params)


def from_torch():
    if GENERATION == "relay":
        pytest.skip("torch.export is imported by Relax only")
    torch = pytest.importorskip(
        "torch", reason="the torch extra is not installed (make test TORCH=1)"
    )
    from tvm.relax.frontend.torch import from_exported_program

    exported = torch.export.export(torch_model(torch), (torch.from_numpy(data()),))
    return from_exported_program(exported)


def torch_model(torch):
    nn, w = torch.nn, {n: torch.from_numpy(a) for n, a in weights().items()}
    layers = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(),
        nn.Conv2d(8, 6, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(),
        nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 7), nn.GELU(),
    )  # fmt: skip
    values = {
        "0.weight": w["w0"], "0.bias": w["b0"], "2.weight": w["w1"],
        "3.weight": w["gamma"], "3.bias": w["beta"], "3.running_mean": w["mean"],
        "3.running_var": w["var"],
        "8.weight": w["w2"], "8.bias": w["b2"], "10.weight": w["w3"].T, "10.bias": w["b3"],
    }  # fmt: skip
    layers.load_state_dict(values, strict=False)
    return layers.eval()


def reference():
    constants = weights()
    args = {
        "x": (data().shape, "float32"),
        **{n: (a.shape, "float32") for n, a in constants.items()},
    }
    graph = ir.read(emit(program, args)["main"])
    arrays = {"x": data(), **constants}
    return evaluate(graph, [arrays[v.name] for v in graph.inputs])[0]


IMPORTERS = pytest.mark.parametrize(
    "importer", [by_hand, from_onnx, from_torch], ids=lambda f: f.__name__
)


@IMPORTERS
def test_the_same_composites(importer):
    counts = selfbyoc.report(selfbyoc.partition_for_tefuse(importer())).counts
    assert {name: counts.get(name, 0) for name in COUNTS} == COUNTS


@IMPORTERS
def test_the_same_numbers(importer):
    found = selfbyoc.build(importer())(data())[0]
    np.testing.assert_allclose(found, reference(), atol=2e-6)


@IMPORTERS
def test_the_same_ops(importer):
    """The neutral graph differs at most in how a matrix on the right is stored."""
    graph = ir.read(partition_ir.prepare(importer(), None)["main"])
    kinds = [call.kind for call in graph if call.kind != "transpose"]
    assert kinds == [
        "conv2d", "bias_add", "relu", "conv2d", "batch_norm", "relu", "max_pool2d",
        "global_avg_pool2d",
        "reshape", "dense", "bias_add", "relu", "dense", "bias_add", "gelu",
    ]  # fmt: skip


def test_onnxruntime_agrees():
    runtime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    pytest.importorskip("onnx", reason="the onnx extra is not installed")
    session = runtime.InferenceSession(onnx_model().SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": data()})[0], reference(), atol=2e-6)
