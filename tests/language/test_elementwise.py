"""`elementwise` in a pattern: one composite for a product and any ops on its elements."""

import numpy as np
import pytest
from harness import assert_close, random_args, run_case

import selfbyoc
from selfbyoc import Case, Composite, either, elementwise, emit, op
from selfbyoc.errors import CompositeError
from selfbyoc.ir.generation import ir
from selfbyoc.ops.vocabulary import KINDS
from selfbyoc.partition.select import select
from selfbyoc.tvm import te, tir

X, W = (1, 3, 9, 11), (5, 3, 3, 3)
SHAPES = {"x": X, "weight": W, "residual": (1, 5, 7, 9), "scale": (5, 1, 1)}

conv = Composite("conv", lambda x, weight: elementwise(op.conv2d(x, weight)))
both = Composite("both", lambda x, weight: elementwise(op.conv2d(elementwise(x), weight)))

OPS = (op.relu, op.tanh, lambda y: op.multiply(y, 0.5), op.abs, op.sigmoid)


def after(count):
    def program(x, weight):
        y = op.conv2d(x, weight)
        for one in OPS[:count]:
            y = one(y)
        return y

    return program


def of(program, **shapes):
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    given = {n: shapes.get(n, SHAPES.get(n)) for n in names}
    return Case(program, **given, constants=[n for n in names if n == "weight"])


def run(composite, case, count=1):
    """It is right, and the composite took all of it."""
    found = run_case(composite, case)
    assert found.counts == {composite.name: count}
    assert_close(found)
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(found.mod, composites=[composite]))
    assert report.left == {}
    return report


def chosen(program, *composites, **shapes):
    case = of(program, **shapes)
    graph = ir.read(emit(program, case.args)["main"])
    matches, report = select(graph, composites)
    return [[c.name for c in m.ops] for m in matches], report, matches


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_one_composite_for_any_number(count):
    (record,) = run(conv, of(after(count))).matched
    assert len(record.ops) == 1 + count


def test_other_tensors_are_numbered_arguments():
    def program(x, weight, residual, scale):
        y = op.add(residual, op.conv2d(x, weight))
        return op.relu(op.multiply(scale, y))

    (record,) = run(conv, of(program)).matched
    types = {name: kind for name, kind, _ in record.args}
    assert list(types) == ["x", "weight", "operand_0", "operand_1"]
    assert (types["operand_0"], types["operand_1"]) == ("float32[1, 5, 7, 9]", "float32[5, 1, 1]")


def test_before_and_after():
    def program(x, shift, weight, residual):
        y = op.conv2d(op.tanh(op.add(x, shift)), weight)
        return op.relu(op.add(y, residual))

    (record,) = run(both, of(program, shift=(3, 1, 1))).matched
    names = {name: kind for name, kind, _ in record.args}
    assert names["operand_0"] == "float32[3, 1, 1]"  # what is computed first counts first
    assert names["operand_1"] == "float32[1, 5, 7, 9]"
    assert len(record.ops) == 5


def test_names_of_their_own():
    named = Composite("named", lambda x, w: elementwise(op.conv2d(x, w), name="addend"))
    _, _, (match,) = chosen(
        lambda x, weight, residual: op.add(op.conv2d(x, weight), residual), named
    )
    assert match.addend_0.shape == (1, 5, 7, 9)
    assert [v.shape for v in match.args.values()] == [X, W, (1, 5, 7, 9)]


def test_an_argument_that_has_a_name_keeps_it():
    """The input of a convolution of one pixel is also what is added to the result."""
    found, _, (match,) = chosen(
        lambda x, weight: op.relu(op.add(op.conv2d(x, weight), x)), conv, weight=(3, 3, 1, 1)
    )
    assert found == [["conv2d", "add", "relu"]]
    assert list(match.args) == ["x", "weight"]
    run(conv, of(lambda x, weight: op.add(op.conv2d(x, weight), x), weight=(3, 3, 1, 1)))


def gelu_spelled(x, weight):
    y = op.conv2d(x, weight)
    return op.multiply(op.multiply(y, 0.25), op.add(op.erf(op.divide(y, 1.5)), 1.0))


@pytest.mark.parametrize(
    "program",
    [
        gelu_spelled,
        lambda x, weight: op.multiply(*[op.conv2d(x, weight)] * 2),
        lambda x, weight: (lambda y: op.subtract(op.exp(y), op.maximum(y, op.tanh(y))))(
            op.conv2d(x, weight)
        ),
    ],
    ids=["gelu", "square", "three ways"],
)
def test_a_value_that_is_read_twice(program):
    """All ways from the product to the result are elementwise: they are taken together."""
    (record,) = run(conv, of(program)).matched
    assert [name for name, _, origin in record.args if origin != "constant"] == ["x"]


def test_a_way_that_is_not_elementwise_ends_it():
    def program(x, weight):
        y = op.conv2d(x, weight)
        return op.relu(op.multiply(y, op.softmax(y)))

    found, report, _ = chosen(program, conv)
    assert found == [["conv2d"]]
    (refused,) = [r for r in report.records if r.root == "relu"]
    assert refused.reason == "conv2d is also used outside the group, by softmax"


def test_a_value_that_is_used_outside_ends_it():
    def program(x, weight):
        y = op.tanh(op.relu(op.conv2d(x, weight)))
        return op.sigmoid(op.abs(y)), op.softmax(y)

    found, report, _ = chosen(program, conv)
    assert found == [["conv2d", "relu", "tanh"]]
    (missed,) = [r for r in report.records if r.root == "sigmoid"]
    assert missed.reason.startswith("at tanh: wanted nobody else that reads it, found softmax")
    assert missed.cause == "used outside"


def test_a_value_that_the_model_returns_ends_it():
    def program(x, weight):
        y = op.relu(op.conv2d(x, weight))
        return op.tanh(y), y

    assert chosen(program, conv)[0] == [["conv2d", "relu"]]


def test_before_the_product_it_begins_after_what_others_read():
    """The input of the convolution is shared, what lies between is not; then all of it is."""

    def shared(x, weight):
        y = op.tanh(x)
        return op.conv2d(op.abs(op.exp(y)), weight), op.softmax(y)

    assert chosen(shared, both)[0] == [["exp", "abs", "conv2d"]]

    def all_shared(x, weight):
        y = op.exp(op.tanh(x))
        return op.relu(op.conv2d(y, weight)), op.softmax(y)

    assert chosen(all_shared, both)[0] == [["conv2d", "relu"]]
    case = of(all_shared)
    found = run_case(both, case)
    assert found.counts == {"both": 1}
    assert_close(found)


def test_a_residual_block():
    """Each addition goes to one of the convolutions; none is computed twice or left."""

    def program(x, weight, w2, w3):
        y = op.relu(op.conv2d(x, weight))
        z = op.conv2d(op.relu(op.conv2d(y, w2, padding=1)), w3, padding=1)
        return op.relu(op.add(z, y))

    square = (5, 5, 3, 3)
    run(conv, of(program, w2=square, w3=square), count=3)

    def two_branches(x, weight, w2):
        return op.relu(op.add(op.conv2d(x, weight), op.conv2d(x, w2)))

    run(conv, of(two_branches, w2=W), count=2)


def test_what_is_broadcast_up_is_not_in_place():
    def program(x, weight, batch):
        return op.relu(op.add(op.relu(op.conv2d(x, weight)), batch))

    found, _, _ = chosen(program, conv, batch=(2, 5, 7, 9))
    assert found == [["conv2d", "relu"]]


@pytest.mark.parametrize(
    "last",
    [
        lambda y: op.split(y, indices_or_sections=7, axis=2)[0],
        lambda y: op.softmax(y),
        lambda y: op.transpose(y, axes=(0, 2, 3, 1)),
    ],
    ids=["several outputs", "reduction", "moves"],
)
def test_ops_that_are_not_elementwise_end_it(last):
    found, _, _ = chosen(lambda x, weight: last(op.relu(op.conv2d(x, weight))), conv)
    assert found == [["conv2d", "relu"]]


def test_ops_that_a_user_declared():
    before = dict(KINDS)
    try:
        shrink = selfbyoc.declare(
            "shrink_twice",
            compute=lambda x, y: tir.Max(x - y, 0.0) + tir.Min(x + y, 0.0),
            numpy=lambda x, y: np.maximum(x - y, 0) + np.minimum(x + y, 0),
            inputs=2,
        )
        flip = selfbyoc.declare(
            "flip_rows",
            compute=lambda x: te.compute(
                x.shape, lambda *i: x(*i[:-1], x.shape[-1] - 1 - i[-1]), name="flip_rows"
            ),
            numpy=lambda x: x[..., ::-1],
            kind="injective",
            shape=lambda x: x,
        )

        def program(x, weight, scale):
            return op.relu(shrink(op.tanh(op.conv2d(x, weight)), scale))

        (record,) = run(conv, of(program)).matched
        assert record.ops == ("conv2d", "tanh", "shrink_twice", "relu")
        found, _, _ = chosen(lambda x, weight: op.relu(flip(op.conv2d(x, weight))), conv)
        assert found == [["conv2d"]]
    finally:
        KINDS.clear()
        KINDS.update(before)


def test_constants_are_operands_too():
    def program(x, weight, residual):
        return op.multiply(op.add(op.conv2d(x, weight), residual), 3.0)

    case = Case(program, x=X, weight=W, residual=(1, 5, 7, 9), constants=["weight", "residual"])
    (record,) = run(conv, case).matched
    assert [origin for name, _, origin in record.args] == ["input", *["constant"] * 3]


def test_the_fewest_and_the_most():
    some = Composite("some", lambda x, weight: elementwise(op.conv2d(x, weight), 1, 2))
    assert chosen(after(0), some)[0] == []
    assert chosen(after(1), some)[0] == [["conv2d", "relu"]]
    found, report, _ = chosen(after(5), some)
    assert found == [["conv2d", "relu", "tanh"]]
    assert report.left == {"multiply": 1, "abs": 1, "sigmoid": 1}


def test_the_larger_match_wins_and_the_rest_are_part_of_it():
    found, report, _ = chosen(after(5), conv)
    assert [len(ops) for ops in found] == [6]
    assert {r.status for r in report.records if r.root != "sigmoid"} == {"part"}
    relu = Composite("relu", lambda x, w: op.relu(op.conv2d(x, w)))
    assert chosen(after(5), relu, conv)[0] == [["conv2d", "relu"]]


def test_a_check_sees_all_of_it_and_the_next_is_asked():
    def at_most_two(match):
        selfbyoc.require(len(match.ops) <= 3, f"{len(match.ops) - 1} ops after the convolution")

    picky = Composite("picky", conv.pattern, check=at_most_two)
    assert chosen(after(5), picky)[0] == [["conv2d", "relu", "tanh"]]
    chain = Composite("chain", both.pattern, check=at_most_two)
    found, _, _ = chosen(lambda x, weight: op.conv2d(op.abs(op.exp(op.tanh(x))), weight), chain)
    assert found == [["exp", "abs", "conv2d"]]


def test_elementwise_alone():
    """A pattern that is nothing but a chain."""
    alone = Composite("alone", lambda x: elementwise(x, at_least=2))

    def program(x, scale):
        return op.softmax(op.exp(op.multiply(op.add(op.tanh(x), 1.0), scale)))

    found, _, (match,) = chosen(program, alone, x=(4, 6), scale=(6,))
    assert found == [["tanh", "add", "multiply", "exp"]]
    assert [v.shape for n, v in match.args.items() if n != "operand_0"] == [(4, 6), (6,)]


def in_the_loops_of_the_last(sch, ops, target):
    """The convolution is computed in the loops of whatever is the last op after it."""
    *epilogue, last = [one for one in ops if one.kind != "conv2d"]
    inner = [block for one in epilogue for block in one.blocks]
    for block in (*inner, *last.blocks[:-1]):
        sch.compute_inline(block)
    n, c, h, w = sch.get_loops(last.block)
    sch.parallel(sch.fuse(n, c))
    sch.compute_at(ops.conv2d.block, h)
    sch.vectorize(w)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_schedule_finds_the_epilogue_in_the_ops(count):
    own = Composite(
        "own", lambda x, weight: elementwise(op.conv2d(x, weight), 1), in_the_loops_of_the_last
    )
    case = of(after(count))
    run(own, case)
    mod = emit(case.program, case.args)
    assert "own schedule" in str(selfbyoc.explain(mod, composites=[own]))
    assert selfbyoc.verify(mod, composites=[own]).ok


def test_explain_says_what_ended_it():
    mod = emit(lambda x, weight: op.relu(op.softmax(op.conv2d(x, weight))), of(after(0)).args)
    told = selfbyoc.explain(mod, composites=[conv])
    record = next(r for r in told.report.records if r.root == "relu")
    assert record.reason == "at softmax: wanted an elementwise op or conv2d, found op softmax"
    assert "softmax" in str(told.why("relu", "conv2d"))


def test_why_two_ops_are_in_one_kernel():
    mod = emit(after(5), of(after(5)).args)
    told = str(selfbyoc.explain(mod, composites=[conv]).why("conv2d", "sigmoid"))
    assert told.startswith("conv2d and sigmoid are in one kernel in conv at sigmoid")


def test_verify_judges_it():
    wrong = Composite("wrong", conv.pattern, compute={"relu": lambda ins, call: te.compute(
        ins[0].shape, lambda *i: tir.Max(ins[0](*i), 0.125), name="relu")})  # fmt: skip
    case = of(after(2))
    mod = emit(case.program, case.args)
    assert selfbyoc.verify(mod, composites=[conv]).ok
    assert not selfbyoc.verify(mod, composites=[wrong]).ok


def test_lint_wants_a_case_with_an_op():
    bare = Composite("c", conv.pattern, cases=[Case(x=X, weight=W)], why="one kernel")
    found = {f.kind: f.message for f in selfbyoc.lint([bare])}
    assert found == {"uncovered-elementwise": "no case has an op of an `elementwise`"}
    more = Case(after(2), x=X, weight=(6, 3, 3, 3))
    full = Composite("c", conv.pattern, cases=[*bare.cases, more], why="one kernel")
    assert list(selfbyoc.lint([full])) == []


def test_a_whole_compute_takes_numbered_arguments():
    def compute(x, weight):
        return x

    whole = Composite("c", conv.pattern, compute=compute, why="one kernel")
    told = [f.message for f in selfbyoc.lint([whole])]
    assert any("numbered arguments of `elementwise`" in text for text in told)


def test_a_program_with_it_says_what_is_wanted():
    with pytest.raises(CompositeError, match="`elementwise` stands for several programs; expected"):
        emit(lambda x: elementwise(x, 1), {"x": (2, 3)})
    args = random_args(Case(x=X, weight=W))
    assert len(ir.read(emit(conv.pattern, {n: a.shape for n, a in args.items()})["main"]).ops) == 1


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"at_least": -1}, "elementwise: at_least=-1; expected a number from 0"),
        ({"at_least": 3, "at_most": 2}, "elementwise: at_most=2; expected None or a number from 3"),
        ({"at_most": 0}, "at_most=0; expected None or a number from 1"),
        ({"name": "two words"}, "name='two words'; expected a name"),
    ],
)
def test_bad_arguments(told, says):
    with pytest.raises(CompositeError, match=says):
        Composite("c", lambda x: elementwise(op.relu(x), **told))


def test_nothing_at_least_is_no_pattern():
    with pytest.raises(CompositeError, match="the pattern returns a bare input"):
        Composite("c", lambda x: elementwise(x))


@pytest.mark.parametrize("count", [150, 300])
def test_a_chain_longer_than_pythons_stack(count):
    """From a program to a partitioned module; nothing is left."""

    def program(x, w):
        y = op.dense(x, w)
        for n in range(count):
            y = op.multiply(op.relu(op.add(y, 0.01 * n)), 0.99) if n % 50 == 0 else op.abs(y)
        return y

    mod = selfbyoc.emit(program, {"x": (3, 5), "w": (7, 5)})
    composite = Composite("all", lambda x, w: elementwise(op.dense(x, w)))
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=[composite]))
    assert report.counts == {"all": 1}
    assert report.left == {}


def test_a_long_program_with_choices():
    """Which option is written is decided once for each, not once for each above it."""

    def program(x, w, b):
        y = op.dense(x, w)
        for _ in range(60):
            y = either(op.add(y, b), op.relu(y))
        return y

    mod = selfbyoc.emit(program, {"x": (3, 5), "w": (7, 5)})
    assert str(mod).count("relu") >= 60
