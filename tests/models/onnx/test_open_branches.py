"""Ifs of open sizes: what a branch asks of them it asks of the calls that take it; and sizes that
are no inputs', which only a call can compare.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnx_models import FLOAT, INT64, model, random, value

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

if GENERATION == "relay":
    pytest.skip("0.17's frontend reads no If of open sizes", allow_module_level=True)

C = value("c", onnx.TensorProto.BOOL)
X, Z = value("x", FLOAT, "n", 24), value("z", FLOAT, "m", 24)
Y = value("y", FLOAT, None, None)


def branch(*nodes, out=("o",)):
    """A graph without inputs; nodes are (op, inputs, output) and attributes."""
    made = [helper.make_node(op, xs, ys.split(), **attrs) for op, xs, ys, attrs in nodes]
    ends = [helper.make_tensor_value_info(name, FLOAT, None) for name in out]
    return helper.make_graph(made, "branch", [], ends)


def chosen(yes, no, out="y"):
    return "If", ["c"], out, {"then_branch": yes, "else_branch": no}


class Both:
    """Ours and ONNX Runtime's of a model of c, x and whatever else."""

    def __init__(self, nodes, *inputs, outputs=(Y,), **weights):
        proto = model(nodes, [C, *inputs], list(outputs), **weights)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
        self.names = ["c", *(each.name for each in inputs)]
        self.library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)

    def check(self, condition, *arrays):
        given = [np.array(condition), *arrays]
        wanted = self.session.run(None, dict(zip(self.names, given, strict=True)))
        for found, right in zip(self.library(*given), wanted, strict=True):
            assert found.shape == right.shape
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)

    def refuses(self, text, condition, *arrays):
        with pytest.raises(InputError, match=f"^{text}$"):
            self.library(np.array(condition), *arrays)


def test_equal_sizes_are_asked_of_the_branch_alone():
    """The sum made one size of both, and each call with two was refused."""
    added = branch(("Add", ["x", "z"], "s", {}), ("Relu", ["s"], "o", {}))
    both = Both([chosen(added, branch(("Tanh", ["x"], "o", {})))], X, Z)
    assert set(both.library.sizes) == {"n", "m"}
    for n in (1, 5, 17):
        both.check(True, random(n, 24), random(n, 24))
        both.check(False, random(n, 24), random(n + 2, 24))
    text = "sizes n and m: expected to be equal"
    both.refuses(text, True, random(5, 24), random(7, 24))


def test_what_every_call_computes_is_promised_still():
    nodes = [("Add", ["x", "z"], "s", {}), chosen(branch(("Relu", ["s"], "o", {})), tanh())]
    both = Both(nodes, X, Z)
    both.check(True, random(5, 24), random(5, 24))
    text = "size n: expected one size, found 5 in axis 0 of input 'x' and 7 in axis 0 of input 'z'"
    both.refuses(text, False, random(5, 24), random(7, 24))


def tanh():
    return branch(("Tanh", ["x"], "o", {}))


def test_kernels_in_branches():
    """A composite in either, and one after them."""
    dense = branch(("MatMul", ["x", "w"], "p", {}), ("Add", ["p", "z"], "o", {}))
    nodes = [chosen(dense, tanh(), "o"), ("Softmax", ["o"], "y", {})]
    both = Both(nodes, X, Z, w=random(24, 24))
    for n in (1, 3, 16, 33):
        both.check(True, random(n, 24), random(n, 24))
        both.check(False, random(n, 24), random(1, 24))


def test_branches_that_read_what_is_outside():
    """An expression of a size that no other parameter of theirs says, and two results."""
    nodes = [
        ("Slice", ["x", "one", "large"], "rows", {}),
        chosen(branch(("Exp", ["rows"], "o", {}), ("Neg", ["rows"], "p", {}), out=("o", "p")),
               branch(("Tanh", ["rows"], "o", {}), ("Abs", ["rows"], "p", {}), out=("o", "p")),
               ["y", "v"]),
        ("Add", ["y", "v"], "s", {}),
    ]  # fmt: skip
    outputs = [value(name, FLOAT, None, None) for name in ("y", "v", "s")]
    both = Both(nodes, X, outputs=outputs, one=np.array([1]), large=np.array([2**31]))
    for n in (2, 9, 17):
        both.check(True, random(n, 24))
        both.check(False, random(n, 24))


def test_an_if_in_a_branch():
    added = branch(("Add", ["r", "z"], "i", {}), out=("i",))
    squared = branch(("Mul", ["r", "r"], "j", {}), out=("j",))
    inner = branch(("Relu", ["x"], "r", {}), chosen(added, squared, "v"), out=("v",))
    both = Both([chosen(inner, tanh())], X, Z)
    both.check(True, random(5, 24), random(5, 24))
    both.check(False, random(5, 24), random(6, 24))
    both.refuses("sizes n and m: expected to be equal", True, random(5, 24), random(6, 24))


@pytest.mark.parametrize("where", ["x", "rows"])
def test_more_than_there_are(where):
    """Of a branch that is taken, TopK left places as the memory was."""
    most = branch(("TopK", [where, "k"], "o places", {"axis": 0}))
    nodes = [("Slice", ["x", "one", "large"], "rows", {}), chosen(most, tanh())]
    numbers = {"one": np.array([1]), "large": np.array([6]), "k": np.array([3])}
    both = Both(nodes, X, **numbers)
    assert both.library.least_sizes == {}
    for n in (4, 7):
        both.check(True, random(n, 24))
    both.check(False, random(2, 24))
    size = "n" if where == "x" else r"min\(6, n\) - min\(1, n\)"
    both.refuses(f"size {size}: expected at least 3", True, random(2, 24))


def test_a_place_of_none_in_a_branch():
    """Of the branch that was not taken it was an error, too."""
    places = branch(("ArgMax", ["x"], "p", {"axis": 0}), ("Cast", ["p"], "o", {"to": FLOAT}))
    both = Both([chosen(places, tanh())], X)
    both.check(True, random(5, 24))
    both.check(False, random(0, 24))
    both.refuses("size n: expected 1 or more", True, random(0, 24))


def test_sizes_that_data_decide():
    """Two of them, which TVM did not build."""
    nodes = [
        ("NonZero", ["x"], "a", {}), ("NonZero", ["z"], "b", {}), ("Add", ["a", "b"], "y", {}),
    ]  # fmt: skip
    ends = [value("x", FLOAT, 9), value("z", FLOAT, 9)], [value("y", INT64, 1, None)]
    library = selfbyoc.build(selfbyoc.from_onnx(model(nodes, *ends)), cache=False)
    x, z = np.eye(1, 9, 3, "float32")[0], np.eye(1, 9, 7, "float32")[0]
    np.testing.assert_array_equal(library(x, z)[0], [[10]])
    with pytest.raises(InputError, match=r"^sizes .*: expected to be equal$"):
        library(x, z + x)


def test_sizes_of_an_expression():
    """A sum of what is cut in two ways, which are equal for some sizes only."""
    nodes = [
        ("Slice", ["x", "zero", "four"], "a", {}), ("Slice", ["z", "one", "large"], "b", {}),
        ("Add", ["a", "b"], "y", {}),
    ]  # fmt: skip
    numbers = {"zero": [0], "one": [1], "four": [4], "large": [2**31]}
    weights = {name: np.array(number) for name, number in numbers.items()}
    proto = model(nodes, [X, Z], [value("y", FLOAT, None, 24)], **weights)
    library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    for n, m in ((2, 3), (4, 5), (9, 5)):
        x, z = random(n, 24), random(m, 24)
        np.testing.assert_allclose(library(x, z)[0], x[:4] + z[1:], rtol=1e-6)
    with pytest.raises(InputError, match=r"^size"):
        library(random(3, 24), random(3, 24))
