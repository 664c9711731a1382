"""What ONNX Runtime's optimiser writes into files; what is refused by name, with a true hint."""

import numpy as np
import pytest
from onnx_models import FLOAT, model, random, value

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::selfbyoc.errors.ModelWarning")
OWN = {"domain": "com.microsoft"}
LEAKY = {"activation": "LeakyRelu", "activation_alpha": 0.1, "transB": 1}
FUSED = {
    "FusedConv": (
        {"x": (1, 3, 6, 7), "z": (1, 4, 6, 7)}, {"w": (4, 3, 3, 3), "b": (4,)}, "xwbz",
        {"activation": "Clip", "activation_params": [0.0, 2.0], "pads": [1, 1, 1, 1]}, "conv2d",
    ),
    "FusedGemm": ({"x": (5, 8)}, {"w": (6, 8), "b": (6,)}, "xwb", LEAKY, "dense"),
    "FusedMatMul": (
        {"x": (2, 5, 3), "w": (2, 5, 7)}, {}, "xw", {"transA": 1, "alpha": 0.125}, "batch_matmul",
    ),
}  # fmt: skip


@pytest.mark.parametrize("op", FUSED)
def test_fused_ops_are_what_they_were_made_of(op):
    given, weights, names, attrs, composite = FUSED[op]
    ends = [value(n, FLOAT, *shape) for n, shape in given.items()], [value("y", FLOAT)]
    arrays = {n: random(*shape) for n, shape in weights.items()}
    proto = model([(op, list(names), "y", attrs | OWN)], *ends, **arrays)
    feeds = {n: random(*shape) for n, shape in given.items()}
    (wanted,) = runtime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    library = selfbyoc.build(selfbyoc.from_onnx(proto))
    assert any(name.startswith(composite) for name in library.report.counts)
    assert first_wrong(library(**feeds)[0], wanted, "float32", 27) is None


def refused(nodes, *sizes, **weights):
    proto = model(nodes, [value("x", FLOAT, *sizes)], [value("y", FLOAT)], **weights)
    with pytest.raises(InputError) as found:
        selfbyoc.from_onnx(proto)
    return str(found.value)


REFUSED = {
    "RandomNormalLike": ({}, "make its result 'y' an input"),
    "RandomUniformLike": ({"seed": 2.0}, "make its result 'y' an input"),
    "MultiHeadAttention": (OWN | {"num_heads": 1}, "give the model as it was before its optimiser"),
    "Scaler": (
        {"domain": "ai.onnx.ml", "offset": [0.5], "scale": [2.0]}, "TreeEnsemble alone is read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("op", REFUSED)
def test_what_no_shape_mends_is_refused_without_asking_for_one(op):
    attrs, text = REFUSED[op]
    said = refused([(op, ["x"], "y", attrs)], "n", 3)
    assert text in said
    assert "give x a shape" not in said


@pytest.mark.skipif(GENERATION == "relay", reason="0.17 has no STFT of an open batch")
def test_transforms_of_an_open_batch():
    """Of a signal of two axes, too; of an open length a shape is asked for, which does help."""
    weights = {"hop": np.array(4), "window": random(8), "size": np.array(8)}
    nodes = [("STFT", ["x", "hop", "window", "size"], "y", {})]
    assert "give x a shape" in refused(nodes, "n", "t", 1, **weights)
    ends = [value("x", FLOAT, "n", 24)], [value("y", FLOAT)]
    flat, x = model(nodes, *ends, **weights), random(3, 24)
    (wanted,) = runtime.InferenceSession(flat.SerializeToString()).run(None, {"x": x})
    library = selfbyoc.build(selfbyoc.from_onnx(flat))
    for count in (3, 1):
        assert first_wrong(library(x[:count])[0], wanted[:count], "float32", 8) is None
