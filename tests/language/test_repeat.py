"""`repeat` in a pattern: a block, and again on its result, as one composite."""

import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import Case, Composite, either, elementwise, emit, many, op, repeat
from selfbyoc.errors import CompositeError
from selfbyoc.ir.generation import ir
from selfbyoc.partition.select import select
from selfbyoc.tvm import te

X, W = (1, 3, 9, 11), (3, 3, 3, 3)


def conv_relu(y, arg):
    return op.relu(op.conv2d(y, arg("weight")))


blocks = Composite("blocks", lambda x: repeat(conv_relu, x))


def times(count, last=lambda y: y):
    """The program with so many blocks, whose weights differ in shape: w0 is that of the first."""
    names = [f"w{n}" for n in range(count)]
    text = "x"
    for name in names:
        text = f"op.relu(op.conv2d({text}, {name}, padding=1))"
    made = eval(f"lambda x, {', '.join(names)}: last({text})", {"op": op, "last": last})
    channels = [3, *range(4, 4 + count)]
    shapes = {n: (b, a, 3, 3) for n, a, b in zip(names, channels, channels[1:], strict=False)}
    return Case(made, x=X, **shapes, constants=names)


def chosen(case, *composites):
    graph = ir.read(emit(case.program, case.args)["main"])
    matches, report = select(graph, composites)
    return [[c.name for c in m.ops] for m in matches], report, matches


@pytest.mark.parametrize("count", [1, 2, 4])
def test_one_composite_for_any_number(count):
    case = times(count)
    found = run_case(blocks, case)
    assert found.counts == {"blocks": 1}
    assert_close(found)
    _, _, (match,) = chosen(case, blocks)
    wanted = {"x": X, **{f"weight_{n}": case.args[f"w{n}"][0] for n in range(count)}}
    assert {name: value.shape for name, value in match.args.items()} == wanted


def test_the_fewest_and_the_most():
    some = Composite("some", lambda x: repeat(conv_relu, x, at_least=2, at_most=3))
    assert chosen(times(1), some)[0] == []
    assert [len(ops) for ops in chosen(times(3), some)[0]] == [6]
    assert [len(ops) for ops in chosen(times(5), some)[0]] == [6, 4]
    one = Composite("one", lambda x: repeat(conv_relu, x, at_most=1))
    assert [len(ops) for ops in chosen(times(3), one)[0]] == [2, 2, 2]


def test_none_is_an_option_after_another_op():
    pooled = Composite("pooled", lambda x: repeat(conv_relu, op.tanh(x), at_least=0))
    assert chosen(Case(lambda x: op.tanh(x), x=X), pooled)[0] == [["tanh"]]
    case = Case(lambda x, w: op.relu(op.conv2d(op.tanh(x), w, padding=1)), x=X, w=W)
    assert chosen(case, pooled)[0] == [["tanh", "conv2d", "relu"]]


def test_a_value_that_is_used_outside_begins_another_match():
    def program(x, a, b, c):
        y = op.relu(op.conv2d(op.relu(op.conv2d(x, a, padding=1)), b, padding=1))
        return op.relu(op.conv2d(y, c, padding=1)), op.softmax(y)

    found, _, matches = chosen(Case(program, x=X, a=W, b=W, c=W), blocks)
    assert found == [["conv2d", "relu", "conv2d_1", "relu_1"], ["conv2d_2", "relu_2"]]
    assert list(matches[1].args) == ["x", "weight_0"]


def test_shared_and_optional_arguments():
    def block(y, arg, bias):
        z = op.conv2d(y, arg("weight"))
        return op.relu(either(op.bias_add(z, arg("bias")), op.add(z, bias)))

    shared = Composite("shared", lambda x, bias: repeat(lambda y, arg: block(y, arg, bias), x))

    def program(x, a, b, c, v, s):
        y = op.relu(op.add(op.conv2d(x, a), s))
        y = op.relu(op.bias_add(op.conv2d(y, b), v))
        return op.relu(op.add(op.conv2d(y, c), s))

    case = Case(program, x=X, a=W, b=W, c=W, v=(3,), s=(1, 1, 1))
    found, _, (match,) = chosen(case, shared)
    assert len(found[0]) == 9
    assert list(match.args) == ["x", "bias", "bias_1", "weight_0", "weight_1", "weight_2"]
    run = run_case(shared, case)
    assert run.counts == {"shared": 1}
    assert_close(run)


def test_elementwise_ops_in_a_block():
    def block(y, arg):
        return elementwise(op.dense(y, arg("weight")), 1)

    mlp = Composite("mlp", lambda x: repeat(block, x))

    def program(x, a, b, c, shift):
        y = op.tanh(op.add(op.dense(x, a), shift))
        return op.multiply(op.dense(op.gelu(op.dense(y, b)), c), 0.5)

    case = Case(program, x=(5, 7), a=(9, 7), b=(6, 9), c=(11, 6), shift=(9,), constants=["shift"])
    found = run_case(mlp, case)
    assert found.counts == {"mlp": 1}
    assert_close(found)


def transposed(weight):
    units, k = weight.shape
    return te.compute((k, units), lambda i, u: weight(u, i), name="weight_t")


def dense_of_transposed(ins, call):
    x, weight = ins
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        call.outputs[0].shape, lambda i, u: te.sum(x(i, k) * weight(k, u), axis=k), name=call.name
    )


def test_packed_by_the_name_without_a_number():
    mlp = Composite(
        "mlp",
        lambda x: repeat(lambda y, arg: op.relu(op.dense(y, arg("weight"))), x),
        pack={"weight": transposed},
        compute={"dense": dense_of_transposed},
    )

    def program(x, a, b):
        return op.relu(op.dense(op.relu(op.dense(x, a)), b))

    found = run_case(mlp, Case(program, x=(5, 7), a=(9, 7), b=(6, 9), constants=["a", "b"]))
    assert found.counts == {"mlp": 1}
    assert_close(found)


def test_explain_says_what_ended_it():
    case = times(2, last=lambda y: op.relu(op.softmax(y)))
    mod = emit(case.program, case.args)
    report = selfbyoc.explain(mod, composites=[blocks]).report
    assert report.counts == {"blocks": 1}
    (missed,) = [r for r in report.records if r.root == "relu_2"]
    assert missed.reason == "at softmax: wanted op conv2d, found op softmax"
    (part,) = [r for r in report.records if r.root == "relu"]
    assert (part.status, part.reason) == ("part", "part of the larger match at relu_1")


def test_verify_and_lint():
    case = times(2)
    mod = emit(case.program, case.args)
    assert selfbyoc.verify(mod, composites=[blocks]).ok
    one = Composite("c", blocks.pattern, cases=[times(1)], why="one kernel")
    assert [f.kind for f in selfbyoc.lint([one])] == ["uncovered-repeat"]
    two = Composite("c", blocks.pattern, cases=[times(1), times(2)], why="one kernel")
    assert list(selfbyoc.lint([two])) == []


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (lambda x: repeat(conv_relu, x, at_most=0), "at_most=0; expected None or a number from 1"),
        (lambda x: repeat(lambda y, arg: y, x), "the block returns a bare input; expected an op"),
        (lambda x: repeat(lambda y, arg: op.relu(x), x), "does not use its first argument"),
        (
            lambda x: repeat(lambda y, arg: repeat(conv_relu, y), x),
            "no block can have a `many` or a `repeat` in it",
        ),
        (
            lambda x: repeat(lambda y, arg: op.concatenate(many(lambda arg: op.relu(y))), x),
            "no block can have a `many` or a `repeat` in it",
        ),
        (lambda x: repeat(lambda y, arg: "y", x), "a pattern works on arguments and ops"),
        (lambda x: repeat(conv_relu, x, at_least=0), "the pattern returns a bare input"),
    ],
)
def test_bad_blocks(pattern, says):
    with pytest.raises(CompositeError, match=says):
        Composite("c", pattern)


def test_a_program_with_it_says_what_is_wanted():
    with pytest.raises(CompositeError, match="`repeat` stands for several programs; expected"):
        emit(blocks.pattern, {"x": X})
