"""What ONNX files out of people's packages hold, one of a kind: `make files` found it."""

import numpy as np
import pytest
from onnx_models import FLOAT, model, random, value

import selfbyoc
from selfbyoc import from_onnx

runtime = pytest.importorskip("onnxruntime")


def check(proto, **given):
    """Ours against ONNX Runtime with nothing fused."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(proto.SerializeToString(), options)
    wanted = session.run(None, given)
    library = selfbyoc.build(from_onnx(proto), cache=False)
    for ours, theirs in zip(library(*given.values()), wanted, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    return library


def of_image(nodes, opset, **constants):
    ends = [value("x", FLOAT, 2, 3, 5, 7)], [value("y", FLOAT, None, None, None, None)]
    return model(nodes, *ends, opset=opset, ir=6, **constants)


# ---- sizes


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 3), (1, 1, 0.2, 1)])
def test_a_resize_of_opset_10(mode, scales):
    """It has no roi: 0.27 took the scales for it."""
    nodes = [("Relu", ["x"], "r", {}), ("Resize", ["r", "scales"], "y", {"mode": mode})]
    check(of_image(nodes, 10, scales=np.float32(scales)), x=random(2, 3, 5, 7))


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_an_upsample(mode, opset):
    scales = [1.0, 1.0, 2.0, 3.0]
    if opset < 9:
        proto = of_image([("Upsample", ["x"], "y", {"mode": mode, "scales": scales})], opset)
    else:
        nodes = [("Upsample", ["x", "scales"], "y", {"mode": mode})]
        proto = of_image(nodes, opset, scales=np.float32(scales))
    check(proto, x=random(2, 3, 5, 7))


@pytest.mark.parametrize("opset", [11, 13])
def test_a_resize_to_sizes_with_empty_scales(opset):
    """Before opset 13 nothing could be left out."""
    nodes = [("Resize", ["x", "roi", "none", "sizes"], "y", {"mode": "linear"})]
    empty = np.zeros(0, "float32")
    proto = of_image(nodes, opset, roi=empty, none=empty, sizes=np.array([2, 3, 10, 9]))
    check(proto, x=random(2, 3, 5, 7))


# ---- nothing


@pytest.mark.parametrize("others", [1, 2])
def test_a_concat_with_what_is_empty(others):
    """PyTorch writes one where a list of features has no more."""
    nodes = [("Concat", ["x", "none", "x"][: others + 1], "y", {"axis": 1})]
    check(of_image(nodes, 13, none=np.zeros((2, 0, 5, 7), "float32")), x=random(2, 3, 5, 7))


def test_a_concat_of_nothing_but_what_is_empty_stays():
    none = np.zeros((2, 0), "float32")
    nodes = [
        ("Concat", ["none", "none"], "c", {"axis": 1}),
        ("Concat", ["x", "c"], "y", {"axis": 1}),
    ]
    ends = [value("x", FLOAT, 2, 3)], [value("y", FLOAT, 2, 3)]
    check(model(nodes, *ends, none=none), x=random(2, 3))
