"""Reductions of no elements in ONNX models: of sizes that are 0, or that leave no rows."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import FLOAT, INT64, model, value

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

VALUES = {
    "ReduceL1": [0], "ReduceL2": [0], "ReduceLogSum": [-np.inf], "ReduceLogSumExp": [-np.inf],
    "ReduceMax": [-np.inf], "ReduceMean": [np.nan], "ReduceMin": [np.inf],
    "ReduceProd": [1], "ReduceSum": [0], "ReduceSumSquare": [0],
}  # fmt: skip
# How a model has no rows -> what it says of their number, and what a call does.
ROWS = {"open": ("n", 0), "open, sliced": ("n", 1), "constant": (0, 0), "sliced": (1, 1)}
IMAGE = ("Unsqueeze", ["rows"], "image", {"axes": [0, 1]})
POOLS = ("GlobalAveragePool", "GlobalMaxPool")


def build(how, *nodes, **weights):
    """Of nodes that read `rows`, of which there are none; and what to call it with."""
    said, called = ROWS[how]
    first = ("Slice", ["x", "start", "stop"], "rows", {})
    first = first if "sliced" in how else ("Identity", ["x"], "rows", {})
    op = nodes[-1][0]
    rank = 1 if op in VALUES else 4 if op in POOLS else 2
    out = value("y", INT64 if op.startswith("Arg") else FLOAT, *"abcd"[:rank])
    numbers = {"start": np.array([1]), "stop": np.array([6]), **weights}
    proto = model([first, *nodes], [value("x", FLOAT, said, 5)], [out], opset=11, **numbers)
    library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    if said == "n":  # what the memory then holds
        library(np.full((9, 5), 3, "float32"))
    return library, np.ones((called, 5), "float32")


@pytest.mark.parametrize("how", ROWS)
@pytest.mark.parametrize("op", VALUES)
def test_reductions(op, how):
    """Of a slice of an open size they were what the memory held."""
    library, x = build(how, (op, ["rows"], "y", {"axes": [0], "keepdims": 0}))
    wanted = VALUES[op][-1 if "open" in how else 0]
    np.testing.assert_array_equal(library(x)[0], np.full(5, wanted, "float32"))


@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")
@pytest.mark.parametrize("how", ["open", "open, sliced"])
def test_products(how):
    turned = ("Transpose", ["rows"], "turned", {})
    library, x = build(how, turned, ("MatMul", ["turned", "rows"], "y", {}))
    np.testing.assert_array_equal(library(x)[0], np.zeros((5, 5)))


def place_of(how, op):
    """What an error calls the rows: Relay has no names for expressions."""
    if GENERATION == "relax":
        return r"size min\(6, n\) - min\(1, n\)" if "sliced" in how else "size n"
    return f"axis 0 of {op.lower()}" if "sliced" in how else "size x_0"


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("how", ["open", "open, sliced"])
def test_a_place_of_none(how, op):
    """Any number stood there; on Relay -1."""
    library, x = build(how, (op, ["rows"], "y", {"axis": 0}))
    with pytest.raises(InputError, match=f"^{place_of(how, op)}: expected 1 or more$"):
        library(x)


def test_no_place_of_no_columns():
    """Of open sizes that are both 0 there is nothing to refuse either."""
    ends = [value("x", FLOAT, "n", "m")], [value("y", INT64, "n", 1)]
    proto = model([("ArgMax", ["x"], "y", {"axis": 1})], *ends)
    library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    for n in (1, 5):
        np.testing.assert_array_equal(library(np.eye(n, dtype="float32"))[0][:, 0], range(n))
    assert library(np.ones((0, 0), "float32"))[0].shape == (0, 1)
    with pytest.raises(InputError, match=r"^size (m|x_1): expected 1 or more$"):
        library(np.ones((3, 0), "float32"))


@pytest.mark.parametrize("how", ["constant", "sliced"])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin", *POOLS])
def test_what_says_nothing_of_none_is_refused(op, how):
    nodes = [IMAGE, (op, ["image"], "y", {})] if op in POOLS else [(op, ["rows"], "y", {})]
    axis = 2 if op in POOLS else 0
    text = f"{op}: .* its input '.*' has no elements along axis {axis}; expected 1 or more"
    with pytest.raises(InputError, match=text):
        build(how, *nodes)


@pytest.mark.parametrize("op", POOLS[: 2 if GENERATION == "relax" else 1])
def test_an_image_of_an_open_size_of_0(op):
    """Its sum was not begun either. On Relay the largest is TVM's own, -inf."""
    library, x = build("open", IMAGE, (op, ["image"], "y", {}))
    with pytest.raises(InputError, match=r"^size (n|x_0): expected 1 or more$"):
        library(x)


def test_no_places():
    """Of no columns there is nothing to refuse."""
    library, x = build("constant", ("ArgMax", ["rows"], "y", {"axis": 1}))
    assert library(x)[0].shape == (0, 1)


def largest(how, k, axis=0):
    return build(how, ("TopK", ["rows", "k"], ["y", "places"], {"axis": axis}), k=np.array([k]))[0]


def test_as_many_of_an_open_size_as_are_asked_for():
    """Of fewer the places of the others were as the memory was."""
    library = largest("open", 3)
    x = np.random.default_rng(0).standard_normal((7, 5)).astype("float32")
    for rows in (3, 4, 7):
        np.testing.assert_array_equal(library(x[:rows])[0], -np.sort(-x[:rows], axis=0)[:3])
    for rows in (0, 1, 2):
        with pytest.raises(InputError, match=r"^size (n|x_0): expected at least 3"):
            library(x[:rows])
    of_a_slice = largest("open, sliced", 3)
    np.testing.assert_array_equal(of_a_slice(x[:4])[0], -np.sort(-x[1:4], axis=0)[:3])
    text = f"^{place_of('sliced', 'TopK')}: expected at least 3$"
    for rows in (1, 2, 3):
        with pytest.raises(InputError, match=text):
            of_a_slice(x[:rows])
    assert largest("open", 2, axis=1)(x[:1])[0].shape == (1, 2)  # of an axis that has 5


@pytest.mark.skipif(GENERATION == "relay", reason="0.17's frontend reads no If of open sizes")
def test_of_a_branch_nothing_is_asked():
    """The model itself asks whether there are as many."""
    many = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["most", "places"], axis=0),
         helper.make_node("ReduceSum", ["most"], ["of_most"], keepdims=0)],
        "many", [], [value("of_most", FLOAT)],
    )  # fmt: skip
    few = helper.make_graph(
        [helper.make_node("ReduceMax", ["x"], ["of_all"], keepdims=0)],
        "few", [], [value("of_all", FLOAT)],
    )  # fmt: skip
    nodes = [
        ("Shape", ["x"], "shape", {}),
        ("Gather", ["shape", "first"], "rows", {}),
        ("GreaterOrEqual", ["rows", "least"], "enough", {}),
        ("If", ["enough"], "y", {"then_branch": many, "else_branch": few}),
    ]
    numbers = {"k": np.array([3]), "first": np.array(0), "least": np.array(3)}
    proto = model(nodes, [value("x", FLOAT, "n")], [value("y", FLOAT)], **numbers)
    library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    assert library(np.array([1, 5, 2, 4], "float32"))[0] == 11
    assert library(np.array([1, 5], "float32"))[0] == 5


@pytest.mark.skipif(GENERATION == "relay", reason="0.17's frontend wants an input")
def test_as_many_as_an_attribute_asks_for():
    """Before opset 10 that was none of the inputs."""
    nodes = [("TopK", ["x"], ["y", "places"], {"axis": 0, "k": 3})]
    proto = model(nodes, [value("x", FLOAT, "n")], [value("y", FLOAT, 3)], opset=9)
    library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    np.testing.assert_array_equal(library(np.array([1, 5, 2, 4], "float32"))[0], [5, 4, 2])
    with pytest.raises(InputError, match=r"^size (n|x_0): expected at least 3"):
        library(np.ones(2, "float32"))


@pytest.mark.skipif(GENERATION == "relax", reason="Relay alone checks by functions of their own")
def test_checks_are_no_ops_of_their_own():
    """A38, C18: the registry of ops is TVM's own, whatever was built."""
    from tvm import IRModule, ir, relay

    x = relay.var("x", shape=(2, relay.Any()))
    data, places = relay.topk(relay.nn.relu(x), k=3, ret_type="both")
    library = selfbyoc.build(IRModule.from_expr(relay.Function([x], relay.Tuple([data, places]))))
    given = np.random.default_rng(0).standard_normal((2, 7)).astype("float32")
    found = library(given)
    np.testing.assert_array_equal(found[0], -np.sort(-np.maximum(given, 0), axis=1)[:, :3])
    with pytest.raises(InputError, match="expected at least 3"):
        library(given[:, :2])
    assert not [n for n in map(str, ir.Op.list_op_names()) if "tefuse" in n]
