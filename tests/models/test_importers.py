"""One composite matches the same network from every importer: ONNX, PyTorch, and the generation's
own IR.
"""

import warnings

import numpy as np
import pytest
from models import COUNTS, data, onnx_model, program, weights

import selfbyoc
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition_ir
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.tvm import GENERATION


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


def needs_torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")


def imported(model, x):
    """A module of PyTorch as this generation imports it."""
    import torch

    with torch.no_grad():
        if GENERATION == "relax":
            from tvm.relax.frontend.torch import from_exported_program

            return from_exported_program(torch.export.export(model, (x,)))
        from tvm import relay

        with warnings.catch_warnings():  # 0.17 reads what torch.jit.trace makes, and nothing newer
            warnings.simplefilter("ignore")
            torch.backends.mha.set_fastpath_enabled(False)  # one op for a layer, which no one reads
            traced = torch.jit.trace(model, x)
            mod, params = relay.frontend.from_pytorch(traced, [("x", tuple(x.shape))])
        return partition_ir.prepare(mod, params)


def from_torch():
    torch = needs_torch()
    return imported(torch_model(torch), torch.from_numpy(data()))


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


def torch_block(torch, fused):
    """layer_norm, attention of 2 heads, MLP with GELU; PyTorch's own attention, or written out."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width=24, heads=2):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attention(self, q, k, v):
            if fused:
                return nn.functional.scaled_dot_product_attention(q, k, v)
            return ((q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5).softmax(-1) @ v

        def forward(self, x):
            batch, rows, width = x.shape
            qkv = self.qkv(self.norm1(x)).reshape(batch, rows, 3, self.heads, -1)
            y = self.attention(*qkv.permute(2, 0, 3, 1, 4).unbind(0))
            x = x + self.out(y.transpose(1, 2).reshape(batch, rows, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    torch.manual_seed(0)
    return Block().eval()


def encoder_layer(torch):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        24, 2, 48, activation="gelu", batch_first=True, norm_first=True
    )
    return layer.eval()


TRANSFORMERS = {
    "written out": (lambda torch: torch_block(torch, False), {"layer_norm_dense": 1, "dense": 1}),
    "fused": (lambda torch: torch_block(torch, True), {"layer_norm_dense": 1, "dense": 1}),
    # It turns the batch behind the rows before the first dense.
    "encoder layer": (encoder_layer, {"layer_norm": 2, "dense": 2}),
}


# What moves data, and on Relay the scale of the scores and the mask of zeros, which it computes.
LEFT = {
    "relax": {"add", "multiply", "reshape", "strided_slice", "take", "transpose"},
    "relay": {
        "add",
        "cast",
        "full",
        "power",
        "reshape",
        "split",
        "strided_slice",
        "take",
        "transpose",
    },
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_transformer_block_from_pytorch(name):
    """All of its attention, MLP and layer_norm, though each importer takes them apart."""
    torch = needs_torch()
    make, counts = TRANSFORMERS[name]
    block, x = make(torch), torch.randn(2, 7, 24)
    mod = imported(block, x)
    with torch.no_grad():
        expected = block(x).numpy()
    found = selfbyoc.explain(mod)
    left = {kind for _, kind, owner in found.report.ops if not owner}
    assert left <= LEFT[GENERATION]
    assert found.report.counts == {
        "attention": 1, "dense_gelu_dense": 1, "layer_norm": 1, **counts,
    }  # fmt: skip
    np.testing.assert_allclose(selfbyoc.build(mod)(x.numpy())[0], expected, atol=2e-6)


@pytest.mark.skipif(GENERATION == "relay", reason="torch.export is imported by Relax only")
@pytest.mark.parametrize("mask", ["causal", "float", "bool"])
def test_masked_attention_of_pytorch(mask):
    """Its safe softmax gives a row that is masked whole zeros; so does the kernel."""
    torch = needs_torch()
    from tvm.relax.frontend.torch import from_exported_program

    class Masked(torch.nn.Module):
        def forward(self, q, k, v, m):
            given = {"is_causal": True} if mask == "causal" else {"attn_mask": m}
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, **given)

    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 19, 24) for _ in range(3))
    seen = torch.rand(2, 1, 19, 19) < 0.5
    seen[1, 0, 4], seen[0, 0, 0, 1] = False, True
    m = seen if mask == "bool" else torch.zeros(2, 1, 19, 19).masked_fill(~seen, -np.inf)
    mod = from_exported_program(torch.export.export(Masked(), (q, k, v, m)))
    library = selfbyoc.build(mod)
    assert library.report.counts == {"attention": 1}
    expected = Masked()(q, k, v, m).numpy()
    assert mask == "causal" or not expected[1, :, 4].any()
    (found,) = library(*(a.numpy() for a in (q, k, v, m)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
