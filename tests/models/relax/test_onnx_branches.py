"""Ifs whose branches give values of different sizes, which data decide then; and branches as models
of their own: what is read right outside is read right there.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, INT64, model, value

import selfbyoc
from selfbyoc.errors import InputError

C, X = value("c", onnx.TensorProto.BOOL), value("x", FLOAT, 2, 1, 64)
TAKEN = (True, False, False, True)


def drawn(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype("float32") * np.float32(0.4)


def side(nodes, outputs, **weights):
    """A branch; nodes are (op, inputs, output or outputs) and attributes."""
    made = [helper.make_node(op, xs, y.split(), **attrs) for op, xs, y, attrs in nodes]
    arrays = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    ends = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs.split()]
    return helper.make_graph(made, "side", [], ends, arrays)


def chosen(yes, no, outputs="y"):
    return "If", ["c"], outputs.split(), {"then_branch": yes, "else_branch": no}


def check(nodes, outputs, *inputs, given=None, taken=TAKEN, **weights):
    """A model of c and these inputs against ONNX Runtime, by either branch; its library."""
    ends = [value(name, kind, *[None] * rank) for name, kind, rank in outputs]
    proto = model(nodes, [C, *(inputs or [X])], ends, **weights)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    names = [each.name for each in proto.graph.input]
    for flag in taken:
        arrays = [np.array(flag), *(given or [drawn(2, 1, 64)])]
        wanted = session.run(None, dict(zip(names, arrays, strict=True)))
        found = library(*arrays)
        assert len(found) == len(wanted)
        for ours, right in zip(found, wanted, strict=True):
            assert (ours.dtype, ours.shape) == (right.dtype, right.shape)
            np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5)
    return library


def conv(steps, out="o"):
    """Of `out` as the call itself: TVM's frontend binds it where it is read."""
    return side([("Conv", ["x", "w"], out, {"strides": [steps]})], out, w=drawn(4, 1, 9))


def test_results_of_different_sizes():
    """The second branch ended the process, though each input's sizes were known."""
    after = [("Relu", ["y"], "r", {}), ("Shape", ["r"], "s", {})]
    outputs = [("r", FLOAT, 3), ("s", INT64, 1)]
    library = check([chosen(conv(8), conv(4)), *after], outputs)
    assert library.report.counts["conv2d"] == 2


def test_results_of_one_size_before_a_kernel():
    """What a branch allocated lay in the If, and ended the process, too."""
    lstm = ("LSTM", ["t", "w", "r"], ["h"], {"hidden_size": 8})
    nodes = [chosen(conv(8), conv(8)), ("Transpose", ["y"], "t", {"perm": [2, 0, 1]}), lstm]
    library = check(nodes, [("h", FLOAT, 4)], w=drawn(1, 32, 4), r=drawn(1, 32, 8))
    assert library.report.counts["lstm"] == 1


def test_an_if_in_a_branch_constants_and_nothing():
    inner = side([("If", ["c"], "i", chosen(conv(8), conv(4))[3]), ("Relu", ["i"], "o", {})], "o")
    nodes = [
        chosen(inner, conv(2)),
        chosen(side([], "k", k=np.ones((0, 3), "float32")), side([], "x2", x2=drawn(2, 3)), "e"),
        chosen(*(side([(op, ["x"], "o", {})], "o") for op in ("Abs", "Identity")), "same"),
    ]
    check(nodes, [("y", FLOAT, 3), ("e", FLOAT, 2), ("same", FLOAT, 3)])


def both(nodes, outputs="o", **weights):
    """Two branches of the same names, and of other weights."""
    others = {name: a * 2 if a.dtype == np.float32 else a for name, a in weights.items()}
    return side(nodes, outputs, **weights), side(nodes, outputs, **others)


SCALES = {"g": drawn(64), "b": drawn(64)}
IMAGE = {"s": drawn(1), "m": drawn(1), "v": drawn(1) ** 2}
OPTIONAL = [
    (("LayerNormalization", ["x", "g", "b"], "o", {}), SCALES),
    (("BatchNormalization", ["x", "s", "s", "m", "v"], "o", {}), IMAGE),
    (("Dropout", ["x"], "o", {}), {}),
    (("MaxPool", ["x"], "o", {"kernel_shape": [2]}), {}),
]


@pytest.mark.parametrize(("node", "weights"), OPTIONAL, ids=[node[0] for node, _ in OPTIONAL])
def test_a_last_op_that_may_have_more_results(node, weights):
    """All that it may have became results of the library."""
    check([chosen(*both([node], **weights))], [("y", FLOAT, 3)])


def test_one_hot_in_a_branch():
    one_hot = both(
        [("OneHot", ["i", "depth", "values"], "o", {})],
        depth=np.array(3), values=np.array([0, 1], "float32"),
    )  # fmt: skip
    given = [np.array([0, -1, 2])]
    check([chosen(*one_hot)], [("y", FLOAT, 2)], value("i", INT64, 3), given=given)


@pytest.mark.parametrize("batch", [2, "n"])
@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_recurrent_layers_in_branches(op, batch):
    """Silero's detector of speech: one network for each rate, in a branch each."""
    gates = {"LSTM": 4, "GRU": 3}[op]
    layer = both(
        [(op, ["x", "w", "r", "b"], "all last", {"hidden_size": 8})], "all last",
        w=drawn(1, gates * 8, 8), r=drawn(1, gates * 8, 8), b=drawn(1, gates * 16),
    )  # fmt: skip
    nodes, outputs = [chosen(*layer, "y h")], [("y", FLOAT, 4), ("h", FLOAT, 3)]
    library = check(nodes, outputs, value("x", FLOAT, 5, batch, 8), given=[drawn(5, 2, 8)])
    assert library.report.counts[op.lower()] == 2


def test_a_weight_of_the_graph_is_there_once():
    """Branches read it as it is, and their own constants have names that nothing else has."""
    nodes = [("LayerNormalization", ["x", "w", "b"], "n", {}), ("MatMul", ["n", "big"], "o", {})]
    weights = {"w": drawn(64), "b": drawn(64), "big": drawn(64, 48)}
    proto = model([chosen(side(nodes, "o"), side(nodes, "o"))], [C, X], [
        value("y", FLOAT, None, None, None)
    ], **weights)  # fmt: skip
    text = selfbyoc.from_onnx(proto).script(show_meta=True)
    assert text.count("shape=[64, 48]") <= 1
    check([chosen(side(nodes, "o"), side(nodes, "o"))], [("y", FLOAT, 3)], **weights)


@pytest.mark.parametrize(
    ("node", "found"),
    [
        (("Squeeze", ["x", "one"], "o", {}), "float32 of 2 axes and as float32 of 3 axes"),
        (("Cast", ["x"], "o", {"to": onnx.TensorProto.DOUBLE}), ""),
    ],
    ids=["axes", "dtype"],
)
def test_branches_of_different_kinds_are_refused(node, found):
    yes = side([node], "o", one=np.array([1]))
    no = side([("Identity", ["x"], "o", {})], "o")
    proto = model([chosen(yes, no)], [C, X], [helper.make_tensor_value_info("y", FLOAT, None)])
    with pytest.raises(InputError, match=f"its branches give 'y' as {found}" if found else "If"):
        selfbyoc.from_onnx(proto)


def test_an_axis_of_open_size_that_is_taken_away():
    """It has to be 1, where that is computed: of what every call squeezes, and in a branch."""
    nodes = [("Squeeze", ["x", "one"], "y", {})]
    one = np.array([1])
    proto = model(nodes, [value("x", FLOAT, "n", "t")], [value("y", FLOAT, None)], one=one)
    library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    np.testing.assert_array_equal(library(drawn(3, 1))[0], drawn(3, 1)[:, 0])
    with pytest.raises(InputError, match="input 'x': expected float32"):
        library(drawn(3, 2))

    added = side([("ReduceSum", ["x", "one"], "o", {"keepdims": 0})], "o", one=one)
    squeezed = side([("Squeeze", ["x", "one"], "o", {})], "o", one=one)
    x, outputs = value("x", FLOAT, 2, "t"), [("y", FLOAT, 1)]
    library = check([chosen(squeezed, added)], outputs, x, given=[drawn(2, 1)], taken=(True, False))
    np.testing.assert_allclose(library(np.array(False), drawn(2, 3))[0], drawn(2, 3).sum(1), 1e-5)
    with pytest.raises(InputError, match="size t: expected 1"):
        library(np.array(True), drawn(2, 3))
