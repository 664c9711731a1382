"""A dataflow pattern of TVM's where a pattern is expected: translated, or refused with its text."""

import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import Case, Composite, emit, op
from selfbyoc.errors import CompositeError
from selfbyoc.ir.generation import ir
from selfbyoc.partition.select import select
from selfbyoc.tvm import GENERATION

if GENERATION == "relay":
    from tvm.relay import dataflow_pattern as tvms

    is_constant, PREFIX = tvms.is_constant, ""
else:
    from tvm.relax import dpl as tvms

    is_constant, PREFIX = tvms.is_const, "relax."

wildcard = tvms.wildcard
X, W = (1, 3, 9, 11), (5, 3, 3, 3)


def is_op(name):
    return tvms.is_op(f"{PREFIX}{name}")


def conv_relu(**attrs):
    y = is_op("nn.conv2d")(wildcard(), is_constant())
    return is_op("nn.relu")(y.has_attr(attrs) if attrs else y)


def chosen(program, *composites, constants=("weight",), **shapes):
    args = shapes or {"x": X, "weight": W}
    case = Case(program, **args, constants=constants)
    return run_case(composites[0], case, composites)


def matched(program, composite, **shapes):
    graph = ir.read(emit(program, shapes or {"x": X, "weight": W})["main"])
    matches, report = select(graph, [composite])
    return [[call.name for call in m.ops] for m in matches], report


def relu_of_conv(x, weight):
    return op.relu(op.conv2d(x, weight, strides=(2, 2)))


def test_ops_and_wildcards():
    composite = Composite("c", conv_relu())
    assert composite.arg_names == ("x0", "x1")
    found = chosen(relu_of_conv, composite)
    assert found.counts == {"c": 1}
    assert_close(found)


def test_a_constant_is_asked_for():
    found, report = matched(relu_of_conv, Composite("c", conv_relu()))
    assert found == []
    assert [r.reason for r in report.records] == ["x1 is no constant"]


def test_a_check_of_ones_own_is_asked_too():
    def check(match):
        selfbyoc.require(match.x0.shape[0] > 1, "one image")

    assert chosen(relu_of_conv, Composite("c", conv_relu(), check=check)).counts == {}
    assert chosen(relu_of_conv, Composite("c", conv_relu(), check=lambda m: None)).counts == {
        "c": 1
    }


@pytest.mark.parametrize("strides", [1, 2])
def test_attributes(strides):
    composite = Composite("c", conv_relu(strides=[strides, strides], groups=1))
    assert chosen(relu_of_conv, composite).counts == ({"c": 1} if strides == 2 else {})


def test_alternatives_and_a_value_used_twice():
    y = is_op("nn.conv2d")(wildcard(), wildcard())
    bent = is_op("nn.relu")(y) | is_op("tanh")(y)
    composite = Composite("c", is_op("multiply")(bent, is_op("sigmoid")(y)))

    def program(x, weight):
        y = op.conv2d(x, weight)
        return op.multiply(op.sigmoid(y), op.tanh(y))

    found = chosen(program, composite)
    assert found.counts == {"c": 1}
    assert_close(found)

    def of_two(x, weight, other):
        return op.multiply(op.sigmoid(op.conv2d(x, other)), op.tanh(op.conv2d(x, weight)))

    assert matched(of_two, composite, x=X, weight=W, other=W)[0] == []


def test_one_wildcard_twice_is_one_value():
    x = wildcard()
    composite = Composite("c", is_op("add")(is_op("tanh")(x), x))
    assert composite.arg_names == ("x0",)
    assert matched(lambda a: op.add(op.tanh(a), a), composite, a=X)[0] == [["tanh", "add"]]
    assert matched(lambda a, b: op.add(op.tanh(a), b), composite, a=X, b=X)[0] == []


def test_items_and_tuples():
    halves = is_op("split")(wildcard())
    item = tvms.is_tuple_get_item(halves, 0)
    composite = Composite("c", is_op("nn.relu")(item))

    def program(x):
        return op.relu(op.split(x, indices_or_sections=2, axis=1)[0])

    found, _ = matched(program, composite, x=(5, 6))
    assert found == [["split", "relu"]]
    both = is_op("concatenate" if GENERATION == "relay" else "concat")(
        tvms.is_tuple([is_op("tanh")(wildcard()), wildcard()])
    )
    joined = Composite("joined", both)
    found, _ = matched(lambda x, y: op.concatenate([op.tanh(x), y]), joined, x=X, y=X)
    assert found == [["tanh", "concatenate"]]


def test_a_tuple_is_several_outputs():
    x = wildcard()
    composite = Composite("c", tvms.is_tuple([is_op("tanh")(x), is_op("nn.relu")(x)]))
    found = chosen(lambda x: (op.relu(x), op.tanh(x)), composite, constants=(), x=(5, 7))
    assert found.counts == {"c": 1}
    assert_close(found)


def refused(pattern):
    with pytest.raises(CompositeError) as caught:
        Composite("c", pattern)
    return str(caught.value)


def test_what_is_no_op_of_the_vocabulary():
    told = refused(is_op("nn.relu")(is_op("sin")(is_op("nn.conv2d")(wildcard(), wildcard()))))
    assert told == (
        "composite c: a pattern of TVM's with sin, which is no op of it (`selfbyoc.declare` adds "
        "one); write it in the vocabulary, about as `def pattern(x0, x1): return "
        "op.relu(op.sin(op.conv2d(x0, x1)))`"
    )


def test_what_only_a_check_can_ask():
    told = refused(conv_relu(strides=[2, 2], auto_scheduler_rewritten_layout=""))
    assert "with the attribute 'auto_scheduler_rewritten_layout' of op.conv2d, which has [" in told
    assert "op.relu(op.conv2d(x0, x1, strides=(2, 2)," in told
    told = refused(is_op("nn.relu")(wildcard().has_dtype("float32")))
    assert "DataTypePattern, which a check can ask of `match`" in told
    assert told.endswith("about as `def pattern(x0): return op.relu(x0)`")
    assert "the attributes ['a'] of what is no op" in refused(wildcard().has_attr({"a": 1}))


def test_a_wildcard_is_no_pattern():
    with pytest.raises(CompositeError, match="the pattern returns a bare input"):
        Composite("c", wildcard())


@pytest.mark.skipif(GENERATION == "relax", reason="Relax has no dominates")
def test_dominates_is_elementwise():
    y = is_op("nn.conv2d")(wildcard(), wildcard())
    told = refused(is_op("nn.relu")(wildcard()).dominates(y, is_op("tanh")(wildcard())))
    assert "`dominates`, which is `elementwise`" in told
    assert told.endswith("return elementwise(op.conv2d(x0, x1))`")


@pytest.mark.skipif(GENERATION == "relax", reason="Relax has no optional")
def test_optional():
    composite = Composite(
        "c", is_op("nn.conv2d")(wildcard(), wildcard()).optional(lambda y: is_op("nn.relu")(y))
    )
    assert matched(relu_of_conv, composite)[0] == [["conv2d", "relu"]]
    assert matched(lambda x, weight: op.conv2d(x, weight), composite)[0] == [["conv2d"]]


def test_explain_verify_and_lint():
    case = Case(relu_of_conv, x=X, weight=W, constants=["weight"])
    composite = Composite("c", conv_relu(), cases=[case], why="one kernel")
    assert list(selfbyoc.lint([composite])) == []
    mod = chosen(relu_of_conv, composite).mod
    assert selfbyoc.verify(mod, composites=[composite]).ok
    told = selfbyoc.explain(mod, composites=[composite]).why("conv2d", "relu")
    assert "are in one kernel in c at relu" in str(told)
