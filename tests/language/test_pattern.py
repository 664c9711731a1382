"""The pattern vocabulary and the declaration of composites: what is refused, and with which
words.
"""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import BUILTIN, Case, Composite, Registry, either, emit, many, number, op
from selfbyoc.errors import CompositeError, RegistryError
from selfbyoc.ir.generation import ir
from selfbyoc.tvm import te, tir


def relu_of_dense(x, weight):
    return op.relu(op.dense(x, weight))


def test_argument_names_come_from_the_function():
    composite = Composite("c", relu_of_dense)
    assert composite.arg_names == ("x", "weight")
    assert composite.full_name == "tefuse.c"


def test_unknown_op_lists_the_known_ones():
    with pytest.raises(
        CompositeError, match=r"op\.dens is not in the vocabulary; known: .*'dense'"
    ):
        op.dens("x")


def test_wrong_number_of_inputs():
    with pytest.raises(CompositeError, match=r"op\.dense: expected 2 tensor inputs, found 1"):
        Composite("c", lambda x: op.dense(x))


def test_bare_input_is_no_pattern():
    with pytest.raises(CompositeError, match="composite c: the pattern returns a bare input"):
        Composite("c", lambda x: x)


def test_bare_input_among_alternatives_is_no_pattern():
    with pytest.raises(CompositeError, match="composite c: the pattern returns a bare input"):
        Composite("c", lambda x: either(op.relu(x), x))


def test_something_that_is_no_tensor():
    with pytest.raises(
        CompositeError, match="composite c: a pattern works on arguments and ops, found str"
    ):
        Composite("c", lambda x: "relu")


def forums_conv2d(data, kernel):
    """As the forum wrote it: te where ops are expected."""
    rows = data.shape[0]
    return te.compute((rows,), lambda i: data[i] + kernel[i], name="res")


COMPUTE = r": write what it stands for as ops .* give the function .* to Composite as `compute`"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (lambda x: te.compute((4,), lambda i: tir.Cast("float32", i), name="res"), "te.Tensor res"),
        (lambda x: op.relu(te.placeholder((4,), name="image")), "te.Tensor image"),
        (lambda x: op.concatenate([x, te.placeholder((4,), name="image")]), "te.Tensor image"),
        (lambda x: te.compute((4,), lambda i: x[i], name="res"), "x is no tensor with elements"),
        (forums_conv2d, "data has no shape here"),
    ],
    ids=["result", "input", "in a list", "elements", "the forum's"],
)
def test_a_compute_where_ops_are_expected(pattern, found):
    """A9: "Error Expected RelayExpr got Tensor" was said without what to do."""
    with pytest.raises(CompositeError, match=f"^composite c: .*{found}.*{COMPUTE}"):
        Composite("c", pattern)


def test_an_op_is_not_iterable():
    with pytest.raises(TypeError, match="take its outputs by index"):
        list(op.split(Composite("c", relu_of_dense).outputs[0]))


def test_name_of_a_composite():
    with pytest.raises(CompositeError, match="composite name 'Dense Relu'"):
        Composite("Dense Relu", relu_of_dense)


def test_pack_names_an_unknown_argument():
    with pytest.raises(
        CompositeError, match=r"composite c: pack names \['wieght'\].*expected some of"
    ):
        Composite("c", relu_of_dense, pack={"wieght": lambda w: w})


def test_case_names_an_unknown_argument():
    with pytest.raises(CompositeError, match=r"names \['w'\], which are no arguments"):
        Composite("c", relu_of_dense, cases=[Case(x=(2, 3), w=(4, 3))])


def test_case_with_a_bad_shape():
    with pytest.raises(CompositeError, match="argument 'x': expected a shape"):
        Case(x="2x3")


def test_reference_names_an_unknown_argument():
    with pytest.raises(CompositeError, match=r"composite c: reference names \['w'\]"):
        Composite("c", relu_of_dense, reference=lambda x, w: x @ w.T)


def test_whole_compute_names_an_unknown_argument():
    with pytest.raises(CompositeError, match=r"composite c: compute names \['w'\]"):
        Composite("c", relu_of_dense, compute=lambda x, w, *, ops: x)


def test_registry_refuses_a_duplicate():
    registry = Registry([Composite("c", relu_of_dense)])
    with pytest.raises(RegistryError, match=r"composite 'c' is registered twice.*known: \['c'\]"):
        registry.add(Composite("c", relu_of_dense))


def test_registry_names_the_known_ones():
    registry = Registry([Composite("c", relu_of_dense)])
    assert registry["tefuse.c"] is registry["c"]
    with pytest.raises(RegistryError, match=r"composite 'd' is not registered; known: \['c'\]"):
        registry["d"]


def test_registry_takes_composites_only():
    with pytest.raises(RegistryError, match="expected a Composite, found function"):
        Registry([relu_of_dense])


def test_builtin_names_are_unique():
    assert Registry(BUILTIN).names() == [c.name for c in BUILTIN]


def test_either_needs_two_options():
    with pytest.raises(CompositeError, match="either needs two options"):
        either(Composite("c", relu_of_dense).outputs[0])


def scaled(x, weight, scale):
    y = op.dense(x, weight)
    return op.relu(either(op.multiply(y, number(scale)), y))


@pytest.mark.parametrize(
    ("value", "shape", "left"),
    [(0.5, (), {}), (0.5, (1, 1), {}), (0.5, (4, 5), {"dense": 1, "multiply": 1, "relu": 1})],
)
def test_a_number_is_a_constant_of_one_element(value, shape, left):
    """As an input, or of many elements, it stays outside."""
    mod = emit(
        lambda x, weight, scale: op.relu(op.multiply(op.dense(x, weight), scale)),
        {"x": (4, 3), "weight": (5, 3), "scale": shape},
        {"scale": np.full(shape, value, "float32")},
    )
    report = selfbyoc.report(
        selfbyoc.partition_for_tefuse(mod, composites=[Composite("scaled", scaled)])
    )
    assert report.left == left
    assert report.counts == ({} if left else {"scaled": 1})
    given = emit(
        lambda x, weight, scale: op.relu(op.multiply(op.dense(x, weight), scale)),
        {"x": (4, 3), "weight": (5, 3), "scale": (1, 1)},
    )
    (record,) = selfbyoc.explain(given, composites=[Composite("scaled", scaled)]).records
    assert record.status == "missed"
    assert "a constant of one element" in record.reason


def test_a_number_is_an_argument():
    with pytest.raises(CompositeError, match="number takes an argument of the pattern"):
        Composite("c", lambda x: op.multiply(x, number(op.relu(x))))


def test_many_belongs_into_a_concatenate():
    composite = Composite(
        "c", lambda x: op.concatenate(many(lambda arg: op.conv2d(x, arg("weight"))))
    )
    assert composite.arg_names == ("x",)


def test_a_program_over_plain_shapes():
    mod = emit(lambda x, y: op.add(x, y), {"x": (3, 5), "y": ((3, 5), "float32")})
    graph = ir.read(mod["main"])
    assert [v.type for v in graph.inputs] == ["float32[3, 5]"] * 2


def test_a_program_over_something_else():
    with pytest.raises(CompositeError, match=r"argument 'x': expected a shape .* found 3"):
        emit(lambda x: op.relu(x), {"x": 3})
