"""Ops of ONNX that TVM's frontends lack or read otherwise, written as others: each against ONNX's
reference, with axes of several sizes and one of 1.
"""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx_models import check_by_reference, random

import selfbyoc
from selfbyoc.tvm import GENERATION

RELAX_ALONE = pytest.mark.skipif(GENERATION == "relay", reason="0.17 has not all it takes")
pytestmark = [
    pytest.mark.filterwarnings("ignore::selfbyoc.errors.ModelWarning"),  # shapes are not told
    pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning"),  # the reference's
]
RNG = np.random.default_rng(3)
KINDS = {
    "float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
}  # fmt: skip


def of_op(op, *given, opset=18, constants=(), count=1, **attributes):
    """A model of one op and what it is called with; `constants` are places of its inputs, None is
    an input that is left out.
    """
    names = ["" if a is None else f"x{n}" for n, a in enumerate(given)]
    outputs = [f"y{n}" for n in range(count)]
    node = helper.make_node(op, names, outputs, **attributes)
    arrays = {n: np.asarray(a) for n, a in zip(names, given, strict=True) if n}
    fixed = {f"x{n}" for n in constants}
    ends = [helper.make_tensor_value_info(n, KINDS[str(a.dtype)], a.shape)
            for n, a in arrays.items() if n not in fixed]  # fmt: skip
    graph = helper.make_graph(
        [node], "g", ends, [helper.make_empty_tensor_value_info(n) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in arrays.items() if n in fixed],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return shape_inference.infer_shapes(proto), [a for n, a in arrays.items() if n not in fixed]


def check(op, *given, **options):
    proto, arrays = of_op(op, *given, **options)
    check_by_reference(proto, *arrays)


X = random(2, 3, 5)
INTS = RNG.integers(-9, 9, (3, 5))
BYTES = RNG.integers(0, 255, (1, 2, 5, 7)).astype("uint8")
IMAGE = random(1, 2, 5, 7)


@RELAX_ALONE
@pytest.mark.filterwarnings("ignore:.*serial loops")  # what is of open sizes, as reflected places
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pads_that_are_data(mode):
    opset = 19
    check("Pad", X, np.array([0, 1, 2, 0, 0, 1]), np.float32(4), mode=mode, opset=opset)
    check("Pad", X, np.array([1, 0, 1, 2]), None, np.array([-1, 0]), mode=mode, opset=opset)


@RELAX_ALONE
def test_pads_below_zero():
    """They take away."""
    proto, given = of_op("Pad", X, np.array([0, -1, 2, -1, 0, -3]), np.float32(4))
    (found,) = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(*given)
    wanted = np.pad(X, ((0, 0), (0, 0), (2, 0)), constant_values=4)[:1, 1:, :-3]
    np.testing.assert_array_equal(found, wanted)


DATA = {
    "a diagonal": ("Trilu", (INTS, np.array(-1)), {"upper": 0}),
    "another": ("Trilu", (INTS, np.array(2)), {}),
    "an axis": ("CumSum", (X, np.array(-2)), {"reverse": 1}),
    "sizes of parts": ("Split", (X, np.array([2, 1, 2])), {"axis": 2, "count": 3}),
    "how many of the largest": ("TopK", (X, np.array([2])), {"axis": 1, "count": 2}),
    "a depth": ("OneHot", (INTS, np.array(7), np.float32([0.5, 2])), {"axis": 1}),
    "lengths": ("ReverseSequence", (X, np.array([1, 3])), {"time_axis": 1, "batch_axis": 0}),
    "lengths of columns": ("ReverseSequence", (X, np.array([2, 0, 1])), {}),
    "axes of a mean": ("ReduceMean", (X, np.array([2, 0])), {"keepdims": 0}),
}


@RELAX_ALONE
@pytest.mark.parametrize("name", DATA)
def test_what_is_data(name):
    op, given, options = DATA[name]
    check(op, *given, **options)


PLAIN = {
    "a part of nothing": (
        "Split", (X, np.array([0, 5])), {"axis": 2, "count": 2, "constants": [1]},
    ),
    "an eye": ("EyeLike", (INTS,), {"k": 1, "dtype": TensorProto.FLOAT}),
    "a norm of sizes": ("LpNormalization", (np.abs(X),), {"p": 1, "axis": 1}),
    "another norm": ("LpNormalization", (X,), {"p": 2}),
    "a power of integers": ("Pow", (INTS, np.array(3)), {}),
    "a power by integers": ("Pow", (X, np.arange(5)), {}),
    "an integer's power": ("Pow", (np.abs(INTS), np.float32(0.5)), {}),
    "a determinant": ("Det", (random(2, 4, 4),), {"opset": 11}),
    "one without": ("Det", (np.float32([[[0, 2], [3, 0]], [[1, 2], [2, 4]]]),), {"opset": 11}),
    "depth first": ("LayerNormalization", (X, random(5), random(5)), {"count": 3}),
    "a deformed convolution": (
        "DeformConv",
        (IMAGE, random(3, 2, 3, 2), random(1, 12, 5, 6), random(3), random(1, 6, 5, 6)),
        {"opset": 19, "kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "dilations": [1, 2]},
    ),
    "places of maxima": (
        "MaxPool", (IMAGE,),
        {"count": 2, "kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
    ),
    "a norm that trains": (
        "BatchNormalization", (X, random(3), random(3), random(3), np.abs(random(3))),
        {"count": 3, "training_mode": 1, "momentum": 0.7},
    ),
    "a mask of what is kept": ("Dropout", (X,), {"count": 2}),
    "n-grams": (
        "TfIdfVectorizer", (np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]]),),
        {"max_gram_length": 2, "min_gram_length": 1, "max_skip_count": 3, "mode": "TFIDF",
         "ngram_counts": [0, 4], "ngram_indexes": [1, 0, 2, 3, 4, 5, 6],
         "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7], "weights": [float(n) for n in range(7)]},
    ),
    "a product of bytes": (
        "QLinearMatMul",
        (BYTES[0, 0], np.float32(0.01), np.uint8(110), BYTES[0, 1].T.copy(), np.float32(0.02),
         np.uint8(3), np.float32(2), np.uint8(100)), {"constants": [1, 2, 4, 5, 6, 7]},
    ),
    "a convolution of bytes": (
        "ConvInteger", (BYTES, RNG.integers(0, 255, (3, 2, 2, 3)).astype("uint8"), np.uint8(7)),
        {"pads": [1, 0, 0, 1], "constants": [1, 2]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_written_as_others(name):
    op, given, options = PLAIN[name]
    check(op, *given, **options)


@RELAX_ALONE
@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_that_is_written_to(mode):
    given = random(2, 1, 5, 3), random(2, 1, 2, 3) + 9, np.array([3, 1])
    check("TensorScatter", *given, opset=24, mode=mode)


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(("inverse", "half"), [(0, 0), (0, 1), (1, 0)])
def test_fourier_transforms(inverse, half, opset):
    x, options = random(2, 7, 3, 2 if inverse else 1), {"inverse": inverse, "onesided": half}
    if opset < 20:
        check("DFT", x, opset=opset, axis=1, **options)
    else:
        check("DFT", x, None, np.array(1), opset=opset, constants=[2], **options)


@pytest.mark.skipif(GENERATION == "relay", reason="its onnx does not have these ops")
def test_ops_of_ops():
    """A function that is made of one, and attributes that nobody gives."""
    check("HannWindow", np.array(7), opset=17, constants=[0])
    check("RMSNormalization", X, random(2, 3, 5), opset=23, axis=0)


@pytest.mark.parametrize("back", [0, 1])
def test_a_scan_of_few_steps(back):
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Mul", ["t", "x"], ["o"])],
        "body",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("s", "x")],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("t", "o")],
    )
    options = {"scan_input_axes": [1], "scan_input_directions": [back], "num_scan_inputs": 1}
    state, x = random(3), random(3, 5)
    proto, given = of_op("Scan", state, x, count=2, body=body, scan_output_axes=[1], **options)
    last, told = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(*given)
    for n, column in enumerate(x.T[:: -1 if back else 1]):
        state = state + column
        np.testing.assert_allclose(told[:, n], state * column, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, state, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [[], [3, 3]])
def test_a_scan_of_a_batch(lengths):
    """As it was in opset 8: each element of the batch by itself, here backwards."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("Mul", ["s", "r"], ["o"])]
    ends = [[value(n, TensorProto.FLOAT, [5]) for n in names] for names in (("s", "r"), ("t", "o"))]
    body = helper.make_graph(nodes, "body", *ends)
    named = ["lengths"] if lengths else [""]
    scan = helper.make_node(
        "Scan", [*named, "x0", "x1"], ["y0", "y1"], body=body, num_scan_inputs=1, directions=[1]
    )
    ins = [value("x0", TensorProto.FLOAT, [2, 5]), value("x1", TensorProto.FLOAT, [2, 3, 5])]
    outs = [value("y0", TensorProto.FLOAT, [2, 5]), value("y1", TensorProto.FLOAT, [2, 3, 5])]
    arrays = [numpy_helper.from_array(np.array(lengths), "lengths")] if lengths else []
    graph = helper.make_graph([scan], "g", ins, outs, arrays)
    opsets = [helper.make_opsetid("", 8)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    state, x = random(2, 5), random(2, 3, 5)
    last, told = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(state, x)
    for n in range(3):
        np.testing.assert_allclose(told[:, n], state * x[:, 2 - n], rtol=1e-5, atol=1e-6)
        state = state + x[:, 2 - n]
    np.testing.assert_allclose(last, state, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("given", ["none", "true"])
def test_a_loop_of_few_steps(given):
    """Its number of steps is known, and nothing ends it before."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["s", "f"], ["t"]), helper.make_node("Mul", ["t", "x1"], ["o"]),
        ],
        "body",
        [value("n", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
         value("s", TensorProto.FLOAT, [3])],
        [value("on", TensorProto.BOOL, []), value("t", TensorProto.FLOAT, [3]),
         value("o", TensorProto.FLOAT, [3])],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Loop", ["count", "go" if given == "true" else "", "x0"], ["y0", "y1"],
                          body=body)],
        "g", [value(n, TensorProto.FLOAT, [3]) for n in ("x0", "x1")],
        [value("y0", TensorProto.FLOAT, [3]), value("y1", TensorProto.FLOAT, [4, 3])],
        [numpy_helper.from_array(np.array(4), "count"),
         numpy_helper.from_array(np.array(True), "go")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    state, x = random(3), random(3)
    last, told = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(state, x)
    for n in range(4):
        state = state + n
        np.testing.assert_allclose(told[n], state * x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, state, rtol=1e-5, atol=1e-6)


def test_a_scatter_from_the_end():
    """TVM counts so; indices below zero were refused."""
    check("ScatterElements", X, np.array([[[1, -1, 0]]]), random(1, 1, 3), axis=1)


@pytest.mark.parametrize("half", [0, 1])
def test_frames_of_a_signal(half):
    frames = (random(2, 19, 1), np.array(5), random(8), np.array(8))
    check("STFT", *frames, opset=17, constants=[1, 2, 3], onesided=half)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("points", [0, 2])
def test_products_of_bytes_of_two_signs(turned, points):
    """As onnxruntime's quantize_dynamic writes them; Relay's frontend wants both sides alike."""
    a, b = BYTES.reshape(10, 7), RNG.integers(-128, 127, (7, 12)).astype("int8")
    given = [a, b, np.uint8(131), np.int8(-5)]
    if turned:
        given = [b.T, a.T, np.int8(-5), np.uint8(131)]
    check("MatMulInteger", *given[: 2 + points], constants=range(1, 2 + points))


def test_a_quantized_convolution():
    weight = RNG.integers(-9, 9, (3, 2, 3, 3)).astype("int8")
    scales = np.float32(0.1), np.uint8(7), weight, np.float32([0.1, 0.2, 0.3])
    more = np.zeros(3, "int8"), np.float32(0.9), np.uint8(120)
    check("QLinearConv", BYTES, *scales, *more, constants=range(1, 8), pads=[1, 0, 1, 0])


@pytest.mark.parametrize("given", [0.0, 5.0, -3.0, None])
def test_bytes_by_the_range_of_what_is_there(given):
    """Of zeros the scale is 1 in ONNX Runtime; the standard divides zero by it."""
    x = X if given is None else np.full((2, 3, 5), given, "float32")
    proto, _ = of_op("DynamicQuantizeLinear", x, count=3)
    found, scale, point = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(x)
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    step = (high - low) / 255 or 1.0
    np.testing.assert_allclose(scale, step, rtol=1e-6)
    assert int(point) == round(-low / step)
    wanted = np.clip(np.round(x / step) + int(point), 0, 255)
    assert np.abs(found.astype(int) - wanted).max() <= (given is None)  # of two as near, either


@RELAX_ALONE
def test_quantized_in_blocks():
    scales = np.abs(random(2, 2, 5)) + 0.1
    given = X[:, :2], scales[:, :1], np.zeros((2, 1, 5), "uint8")
    check("QuantizeLinear", *given, opset=21, constants=[1, 2], axis=1, block_size=2)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode):
    check("DepthToSpace", random(1, 8, 2, 3), blocksize=2, mode=mode)
