"""What TVM's ONNX frontends would read as something else: mended, or refused by name."""

from inspect import signature

import numpy as np
import pytest

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
runtime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
from onnx import TensorProto, helper  # noqa: E402
from onnx.inliner import inline_selected_functions  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from selfbyoc.models.onnx.forms import readable  # noqa: E402
from selfbyoc.models.onnx_model import import_onnx  # noqa: E402


def model(nodes, shape=(2, 3, 4, 5), outputs=("y",), opset=18, inputs=(), **constants):
    """A model of one float32 input `x`; `inputs` are more of them, of int64."""
    tensors = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    given += [helper.make_tensor_value_info(n, TensorProto.INT64, [2]) for n in inputs]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "g", given, results, tensors)
    opsets = [helper.make_opsetid("", opset)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return onnx.shape_inference.infer_shapes(made)


def check(made, x):
    """Ours against ONNX Runtime's."""
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": x})
    found = selfbyoc.build(selfbyoc.from_onnx(made), cache=False)(x)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def node(op, inputs, outputs=("y",), **attrs):
    return helper.make_node(op, list(inputs), list(outputs), name=f"the_{op}", **attrs)


@pytest.mark.parametrize("signs", [(1, 1), (1, 0), (0, 1)])
def test_infinities_of_one_sign(signs):
    x = np.array([[np.inf, -np.inf, 1.0, np.nan, 0.0]], "float32")
    made = node("IsInf", ["x"], detect_positive=signs[0], detect_negative=signs[1])
    check(model([made], x.shape), x)


def test_a_row_that_is_masked_whole():
    """TVM's maximum of nothing but -inf is the lowest number: the row was NaN."""
    nodes = [
        node("ReduceMax", ["x", "axes"], ["top"]), node("Equal", ["top", "low"], ["gone"]),
        node("Softmax", ["x"], ["p"]), node("Where", ["gone", "none", "p"]),
    ]  # fmt: skip
    made = model(
        nodes, (3, 5), axes=np.array([-1]), low=np.float32(-np.inf), none=np.zeros(1, "float32")
    )
    x = np.random.default_rng(0).standard_normal((3, 5), dtype="float32")
    x[1] = -np.inf
    check(made, x)


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("wanted", [(9, 11), (8, 10)])
def test_a_transposed_convolution_to_a_shape(auto_pad, wanted):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((3, 6, 3, 3), dtype="float32")
    attrs = {"strides": [2, 2], "output_shape": list(wanted), "auto_pad": auto_pad}
    made = model([node("ConvTranspose", ["x", "w"], **attrs)], w=weight)
    check(made, rng.standard_normal((2, 3, 4, 5), dtype="float32"))


def test_an_op_without_inputs():
    value = onnx.numpy_helper.from_array(np.arange(5, dtype="float32"))
    nodes = [helper.make_node("Constant", [], ["c"], value=value), node("Add", ["x", "c"])]
    made = model(nodes)
    mod = import_onnx(made)  # not folded
    found = selfbyoc.build(mod, cache=False)(np.zeros((2, 3, 4, 5), "float32"))[0]
    np.testing.assert_array_equal(found, np.broadcast_to(np.arange(5), found.shape))


@pytest.mark.parametrize("axes", [[2, 3], [3, 1], [-1], []])
@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"])
def test_axes_that_are_an_input(op, axes):
    """0.17's frontend took the first axis alone: a global pool was one of rows."""
    made = model([node(op, ["x", "a"], keepdims=0)], a=np.array(axes, "int64"))
    check(made, np.random.default_rng(0).standard_normal((2, 3, 4, 5), dtype="float32"))


def test_no_axes_are_none():
    made = [node("ReduceSum", ["x", "a"], noop_with_empty_axes=1)]
    check(model(made, a=np.array([], "int64")), np.ones((2, 3, 4, 5), "float32"))


@pytest.mark.parametrize("op", ["LpPool", "GlobalLpPool"])
@pytest.mark.parametrize("p", [1, 3])
def test_pools_of_powers(op, p):
    attrs = {"kernel_shape": [2, 3]} if op == "LpPool" else {}
    check(model([node(op, ["x"], p=p, **attrs)]), -np.ones((2, 3, 4, 5), "float32"))


INLINES = "inline_schema_functions" in signature(inline_selected_functions).parameters
EXPANDED = {
    "grouped attention": (23, (2, 4, 5, 8), [
        node("Attention", ["x", "k", "v"], is_causal=1, softcap=20.0),
    ]),
    "attention of three axes": (23, (2, 5, 32), [
        node("Attention", ["x", "x", "x"], q_num_heads=4, kv_num_heads=4),
    ]),
    "rotary embedding": (23, (2, 4, 5, 8), [node("RotaryEmbedding", ["x", "cos", "sin"])]),
    "celu": (18, (3, 5), [node("Celu", ["x"], alpha=0.5)]),
    "a norm and its mean": (18, (3, 4), [
        node("LayerNormalization", ["x", "s"], ["n", "m"]), node("Add", ["n", "m"]),
    ]),
}  # fmt: skip


@pytest.mark.skipif(not INLINES, reason="this onnx does not take ops apart")
@pytest.mark.parametrize("name", EXPANDED)
def test_ops_that_onnx_defines_by_others(name):
    opset, shape, nodes = EXPANDED[name]
    rng = np.random.default_rng(0)
    shapes = {"k": (2, 2, 7, 8), "v": (2, 2, 7, 8), "cos": (2, 5, 4), "sin": (2, 5, 4), "s": (4,)}
    read = {n for each in nodes for n in each.input}
    given = {n: rng.random(s, dtype="float32") for n, s in shapes.items() if n in read}
    made, x = model(nodes, shape, opset=opset, **given), rng.random(shape, dtype="float32")
    wanted = ReferenceEvaluator(made).run(None, {"x": x})
    library = selfbyoc.build(selfbyoc.from_onnx(made), cache=False)
    assert "attention" not in name or library.report.counts == {"attention": 1}
    np.testing.assert_allclose(library(x)[0], wanted[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    made = model([node("Gelu", ["x"], approximate=approximate)], opset=20)
    check(made, np.random.default_rng(0).standard_normal((2, 3, 4, 5), dtype="float32"))


def test_a_scale_that_gives_whole_sizes():
    scales = np.array([1, 1, 0.5, 2], "float32")
    made = model([node("Resize", ["x", "", "s"], mode="linear")], (1, 3, 4, 5), s=scales)
    check(made, np.random.default_rng(0).standard_normal((1, 3, 4, 5), dtype="float32"))


TRAINS = {"r": np.float32(0.5), "t": np.bool_(True)}
REFUSED = {
    "dropout that trains": ([node("Dropout", ["x", "r", "t"])], TRAINS, "training_mode is true"),
    "an old dropout's mask": ([node("Dropout", ["x"], ["d", "y"])], {}, "its result 'y' is used"),
    "numbers of 4 bits": (
        [node("Cast", ["x"], ["z"], to=TensorProto.UINT4),
         helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT)],
        {}, "of 8 bits, or of fewer",
    ),
}  # fmt: skip


REGIONS = {"s": np.ones(6, "float32"), "four": np.array([3, 4]), "n": np.zeros(3, "int64")}
RELAY = {
    "a window in the padding": [
        node("AveragePool", ["x"], kernel_shape=[1, 3], strides=[1, 3], pads=[0, 2, 0, 2],
             ceil_mode=1),
    ],
    "an element beyond the last": [node("Gather", ["x", "four"], axis=2)],
    "regions half a pixel on": [
        node("Reshape", ["x", "four"], ["rois"]), node("RoiAlign", ["x", "rois", "n"]),
    ],
    "floats of 8 bits": [
        node("Cast", ["x"], ["z"], to=TensorProto.FLOAT8E4M3FN),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ],
}  # fmt: skip


@pytest.mark.skipif(GENERATION == "relax", reason="Relax's frontend reads it right, or refuses it")
@pytest.mark.parametrize("name", RELAY)
def test_refused_on_relay(name):
    made = model(RELAY[name], (1, 1, 2, 6), opset=20, a=np.int64(2), **REGIONS)
    with pytest.raises(InputError, match="would compute something else"):
        selfbyoc.from_onnx(made)


def test_a_shape_that_nobody_knows_is_refused():
    """What would be written otherwise, and cannot be, must not be read as something else."""
    weight = np.ones((3, 6, 3, 3), "float32")
    made = model(
        [node("ConvTranspose", ["x", "w"], output_shape=[9, 11])], ("n", 3, "h", 5), w=weight
    )
    with pytest.raises(InputError, match="output_shape is not looked at"):
        selfbyoc.from_onnx(made)


def test_an_op_of_another_domain_is_not_looked_at():
    """It may have the name of one of ONNX's, and other attributes."""
    made = model([node("Dropout", ["x", "r", "t"])], **TRAINS)
    with pytest.raises(InputError, match="training_mode"):
        readable(made, "the model")
    made.graph.node[0].domain = "somebody"
    assert readable(made, "the model") is made


def test_a_pool_of_no_image():
    """TVM returned what it was given, or its mean; ONNX Runtime does not run it."""
    made = model([node("Flatten", ["x"], ["f"]), node("GlobalAveragePool", ["f"])])
    text = "'the_GlobalAveragePool': .* its input 'f' has 2 axes; expected an image, of 3 or more"
    with pytest.raises(InputError, match=text):
        selfbyoc.from_onnx(made)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    nodes, constants, said = REFUSED[name]
    with pytest.raises(InputError, match=said) as err:
        selfbyoc.from_onnx(model(nodes, opset=11 if "old" in name else 21, **constants))
    assert f"the_{nodes[0].op_type}" in str(err.value)
