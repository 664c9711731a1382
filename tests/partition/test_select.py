"""What the matcher takes and what it leaves, with the reason for each."""

import pytest
from harness import assert_close, random_args, run_case

import selfbyoc
from selfbyoc import Case, Composite, either, many, op, require
from selfbyoc.errors import CompositeError
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.select import select

SHAPES = {"x": (1, 4, 8, 8), "w": (4, 4, 3, 3), "b": (4,), "v": (4, 4, 3, 3)}


def graph_of(program, **shapes):
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    args = {n: (shapes.get(n) or SHAPES[n], "float32") for n in names}
    return ir.read(emit(program, args)["main"])


def chosen(program, *composites, **shapes):
    matches, report = select(graph_of(program, **shapes), composites)
    return [(m.composite.name, [c.name for c in m.ops]) for m in matches], report


def _conv_any(x, w, b):
    y = op.conv2d(x, w)
    y = either(op.bias_add(y, b), y)
    return either(op.relu(y), y)


conv_relu = Composite("conv_relu", lambda x, w: op.relu(op.conv2d(x, w)))
conv_any = Composite("conv_any", _conv_any)
chain = Composite("chain", lambda x, w, v: op.relu(op.conv2d(op.relu(op.conv2d(x, w)), v)))


def same(x, w):
    return op.conv2d(x, w, padding=1)


def test_earlier_composite_wins():
    def program(x, w, v):
        return op.relu(same(op.relu(same(x, w)), v))

    found, report = chosen(program, chain, conv_relu)
    assert [name for name, _ in found] == ["chain"]
    assert {r.status for r in report.records if r.composite == "conv_relu"} == {"taken"}
    found, _ = chosen(program, conv_relu, chain)
    assert [name for name, _ in found] == ["conv_relu", "conv_relu"]


def test_the_larger_alternative_wins():
    found, _ = chosen(lambda x, w, b: op.relu(op.bias_add(same(x, w), b)), conv_any)
    assert found == [("conv_any", ["conv2d", "bias_add", "relu"])]


def test_the_alternatives_in_any_order():
    """The result is that of the alternative that fits, also where it holds the others."""

    def pattern(x, w):
        y = op.conv2d(x, w)
        return either(y, op.relu(y))

    found, _ = chosen(lambda x, w: op.relu(same(x, w)), Composite("c", pattern))
    assert found == [("c", ["conv2d", "relu"])]


def test_an_optional_argument_is_none():
    seen = []
    refusing = Composite(
        "c", conv_any.pattern, check=lambda match: seen.append((match.b, match.x.shape))
    )
    chosen(lambda x, w: op.relu(same(x, w)), refusing)
    assert set(seen) == {(None, (1, 4, 8, 8))}


def test_unknown_argument_of_a_match_names_the_known_ones():
    bad = Composite("c", conv_relu.pattern, check=lambda match: match.weight)
    with pytest.raises(
        CompositeError,
        match=r"composite c: its check raised AttributeError: composite c: no argument 'weight'; "
        r"the match has \['x', 'w'\]",
    ):
        chosen(lambda x, w: op.relu(same(x, w)), bad)


def test_overlapping_chains_are_taken_from_the_front():
    def program(x, w):
        for _ in range(3):
            x = op.relu(same(x, w))
        return x

    found, report = chosen(program, chain, conv_relu)
    assert found == [
        ("chain", ["conv2d", "relu", "conv2d_1", "relu_1"]),
        ("conv_relu", ["conv2d_2", "relu_2"]),
    ]
    (taken,) = [r for r in report.records if r.status == "taken" and r.composite == "chain"]
    assert taken.reason == "conv2d_1 belongs to chain at relu_1"


def test_a_check_refuses_with_its_reason():
    picky = Composite(
        "picky",
        conv_relu.pattern,
        check=lambda m: require(m.op("conv2d").attrs["groups"] > 1, "groups only"),
    )
    found, report = chosen(lambda x, w: op.relu(same(x, w)), picky)
    assert found == []
    assert [(r.status, r.reason) for r in report.records] == [("refused", "groups only")]


def test_a_refused_candidate_does_not_block_its_neighbour():
    strided = Composite(
        "strided",
        chain.pattern,
        check=lambda m: require(m.of("conv2d")[1].attrs["strides"] == (2, 2), "no stride"),
    )

    def program(x, w):
        a = op.relu(op.conv2d(x, w, padding=1))
        a = op.relu(op.conv2d(a, w, padding=1, strides=2))
        return op.relu(op.conv2d(a, w, padding=1))

    found, report = chosen(program, strided)
    assert found == [("strided", ["conv2d", "relu", "conv2d_1", "relu_1"])]
    assert [r.reason for r in report.records if r.status == "taken"] == [
        "conv2d_1 belongs to strided at relu_1"
    ]


def test_a_value_used_outside_refuses():
    def program(x, w):
        y = same(x, w)
        return op.add(op.relu(y), op.tanh(y))

    found, report = chosen(program, conv_relu)
    assert found == []
    assert report.records[-1].reason == "conv2d is also used outside the group, by tanh"


@pytest.mark.parametrize("swapped", [False, True])
def test_of_a_sum_the_other_side_is_tried(swapped):
    """The first product of the inner sum has another reader; the second one has none."""
    composite = Composite("residual", lambda x, w, r: op.add(op.conv2d(x, w, padding=1), r))

    def program(x, w):
        one, two = same(x, w), same(x, w)
        return op.multiply(op.add(two, one) if swapped else op.add(one, two), one)

    found, _ = chosen(program, composite)
    assert found == [("residual", ["conv2d_1", "add"] if not swapped else ["conv2d", "add"])]


def test_a_value_that_the_model_returns_refuses():
    def program(x, w):
        y = same(x, w)
        return y, op.relu(y)

    found, report = chosen(program, conv_relu)
    assert found == []
    assert report.records[-1].reason == "conv2d is also a result of the model"


def test_a_declared_output_may_be_used_outside():
    def both(x, w):
        y = op.conv2d(x, w)
        return y, op.relu(y)

    def program(x, w):
        y = same(x, w)
        return op.add(op.relu(y), op.tanh(y))

    found, _ = chosen(program, Composite("both", both))
    assert found == [("both", ["conv2d", "relu"])]


@pytest.mark.parametrize("turned", [False, True])
def test_outputs_in_any_order(turned):
    """The values come in the pattern's order, whichever of them is computed last."""

    def both(x, w):
        y = op.conv2d(x, w)
        return (op.relu(y), y) if turned else (y, op.relu(y))

    def program(x, w):
        y = same(x, w)
        return op.subtract(op.relu(y), op.tanh(y))

    composite = Composite("both", both)
    matches, _ = select(graph_of(program), [composite])
    (match,) = matches
    assert [v.name for v in match.outputs] == (["relu", "conv2d"] if turned else ["conv2d", "relu"])
    case = Case(program, x=SHAPES["x"], w=SHAPES["w"])
    run = run_case(composite, case)
    assert run.counts == {"both": 1}
    assert_close(run)


def test_several_outputs_of_a_whole_compute_in_the_patterns_order():
    from selfbyoc.tvm import te, tir

    def both(x, y):
        total = op.add(x, y)
        return op.relu(total), total

    def compute(x, y):
        total = te.compute(x.shape, lambda *i: x(*i) + y(*i), name="total")
        zero = tir.const(0, "float32")
        return te.compute(x.shape, lambda *i: tir.Max(total(*i), zero), name="positive"), total

    def program(x, y):
        total = op.add(x, y)
        return op.subtract(op.relu(total), op.tanh(total))

    case = Case(program, x=(3, 5), y=(3, 5))
    run = run_case(Composite("both", both, compute=compute), case)
    assert run.counts == {"both": 1}
    assert_close(run)


def test_a_way_around_through_another_op_refuses():
    """conv -> tanh (outside) -> add with the conv: cutting the group out would make a cycle."""

    def both(x, w, other):
        y = op.conv2d(x, w)
        return y, op.add(y, other)

    def program(x, w):
        y = same(x, w)
        return op.add(y, op.tanh(y))

    found, report = chosen(program, Composite("both", both))
    assert found == []
    assert "computed from a result of the group, by tanh" in report.records[-1].reason


def test_an_argument_may_not_come_from_inside():
    """TVM issues 14350 and 16175: add(y, power(y)) is no biased matmul."""
    biased = Composite("biased", lambda x, w, other: op.add(op.relu(op.conv2d(x, w)), other))

    def program(x, w):
        y = op.relu(same(x, w))
        return op.add(y, op.multiply(y, y))

    found, report = chosen(program, biased)
    assert found == []
    assert report.records[-1].status == "refused"


def test_the_same_name_is_the_same_value():
    residual = Composite("residual", lambda x, w: op.add(op.conv2d(x, w), x))
    found, _ = chosen(lambda x, w: op.add(same(x, w), x), residual)
    assert len(found) == 1
    found, report = chosen(lambda x, w, y: op.add(same(x, w), y), residual, y=(1, 4, 8, 8))
    assert found == []
    assert "wanted the same value as x" in report.records[0].reason


def test_commutative_ops_match_both_ways():
    residual = Composite("residual", lambda x, w: op.add(op.conv2d(x, w), x))
    found, _ = chosen(lambda x, w: op.add(x, same(x, w)), residual)
    assert len(found) == 1


def test_two_pattern_nodes_are_two_ops():
    twice = Composite("twice", lambda x: op.add(op.relu(x), op.relu(x)))

    def once(x):
        y = op.relu(x)
        return op.add(y, y)

    assert chosen(once, twice)[0] == []
    assert len(chosen(lambda x: op.add(op.relu(x), op.relu(x)), twice)[0]) == 1


def test_attributes_are_constraints():
    strided = Composite("strided", lambda x, w: op.relu(op.conv2d(x, w, strides=2)))
    found, report = chosen(lambda x, w: op.relu(same(x, w)), strided)
    assert found == []
    assert report.records[0].reason == "at conv2d: wanted strides=(2, 2), found strides=(1, 1)"
    found, _ = chosen(lambda x, w: op.relu(op.conv2d(x, w, strides=2)), strided)
    assert len(found) == 1


def test_a_predicate_on_an_attribute():
    def wide(strides):
        return max(strides) > 1

    strided = Composite("strided", lambda x, w: op.relu(op.conv2d(x, w, strides=wide)))
    _, report = chosen(lambda x, w: op.relu(same(x, w)), strided)
    assert report.records[0].reason == "at conv2d: wanted strides=wide, found strides=(1, 1)"


def test_a_constant_in_the_pattern():
    half = Composite("half", lambda x: op.relu(op.multiply(x, 0.5)))
    assert len(chosen(lambda x: op.relu(op.multiply(x, 0.5)), half)[0]) == 1
    found, report = chosen(lambda x: op.relu(op.multiply(x, 0.25)), half)
    assert found == []
    assert "wanted the constant 0.5, found 0.25" in report.records[0].reason


def test_the_nearest_miss_names_the_op():
    found, report = chosen(lambda x, w: op.relu(op.tanh(same(x, w))), conv_relu)
    assert found == []
    assert report.records[0].reason == "at tanh: wanted op conv2d, found op tanh"


def test_parallel_branches():
    def branches(x):
        return op.concatenate(many(lambda arg: op.relu(op.conv2d(x, arg("weight")))))

    composite = Composite("branches", branches)

    def three(x, w, v, u):
        return op.concatenate([op.relu(same(x, k)) for k in (w, v, u)], axis=1)

    found, _ = chosen(three, composite, u=(4, 4, 3, 3))
    assert [len(ops) for _, ops in found] == [7]
    matches, _ = select(graph_of(three, u=(4, 4, 3, 3)), [composite])
    assert list(matches[0].args) == ["x", "weight_0", "weight_1", "weight_2"]


def test_a_report_survives_the_module():
    case = Case(lambda x, w: op.relu(same(x, w)), x=SHAPES["x"], w=SHAPES["w"])
    mod = emit(case.program, case.args, {"w": random_args(case)["w"]})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[conv_relu])
    report = selfbyoc.report(parted)
    assert report.counts == {"conv_relu": 1}
    assert report.left == {}
    assert str(report).startswith("   1 x conv_relu")
