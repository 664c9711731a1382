"""Elementwise ops around a kernel join it, whatever they are: epilogues and prologues."""

import numpy as np
import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import Case, emit, op
from selfbyoc.partition.refusal import OUTSIDE

C, H, W = 13, 9, 11
OUT = (1, C, H, W)


def norm(y, gamma, beta, mean, var):
    return op.batch_norm(y, gamma, beta, mean, var)[0]


def gelu_tanh(y):
    inner = op.multiply(op.add(y, op.multiply(op.power(y, 3.0), 0.044715)), 0.79788)
    return op.multiply(op.multiply(y, 0.5), op.add(op.tanh(inner), 1.0))


def elu(y):
    return op.subtract(op.relu(y), op.relu(op.subtract(1.0, op.exp(y))))


def prelu(y, channel):
    return op.add(op.relu(y), op.multiply(op.minimum(y, 0.0), channel))


def shifted(y, gamma, beta, mean, var, channel):
    return op.add(op.multiply(norm(y, gamma, beta, mean, var), channel), channel)


AFTER = {
    "hard swish": lambda y: op.multiply(y, op.divide(op.clip(op.add(y, 3.0)), 6.0)),
    "its other spelling": lambda y: op.divide(op.multiply(y, op.clip(op.add(y, 3.0))), 6.0),
    "gelu by tanh": gelu_tanh,
    "gelu by sigmoid": lambda y: op.multiply(y, op.sigmoid(op.multiply(y, 1.702))),
    "gelu": lambda y: op.gelu(y),
    "elu": elu,
    "prelu": prelu,
    "prelu by a choice": lambda y, column: op.where(op.greater(y, 0.0), y, op.multiply(column, y)),
    "hard shrink": lambda y: op.where(op.less_equal(op.abs(y), 0.5), 0.0, y),
    "two choices": lambda y, whole: op.where(
        op.less(y, whole), op.where(op.greater_equal(y, -0.5), y, 0.5), op.negative(y)
    ),
    "gelu by tanh, one op": lambda y: op.gelu_tanh(y),
    "square of relu": lambda y: op.power(op.relu(y), 2.0),
    "leaky relu": lambda y: op.leaky_relu(y, alpha=0.1),
    "norm, scale and shift": shifted,
    "residual after": lambda y, whole: op.add(op.leaky_relu(y, alpha=0.3), whole),
    "two residuals": lambda y, whole, other: op.relu(op.add(op.add(y, whole), other)),
    "gate": lambda y, gate: op.multiply(y, gate),
    "row": lambda y, row: op.add(y, row),
    "column": lambda y, column: op.subtract(column, y),
    "one element": lambda y, one: op.multiply(y, one),
}

BEFORE = {
    "norm and relu": lambda x, gamma, beta, mean, var: op.relu(norm(x, gamma, beta, mean, var)),
    "gate": lambda x, gate: op.multiply(x, gate),
    "not zero at zero": lambda x: op.sigmoid(op.add(x, 1.5)),
    "two images": lambda x, whole: op.relu(op.add(x, whole)),
}


def conv(**attrs):
    return lambda x, weight: op.conv2d(x, weight, **attrs)


def pair(x, deep, weight):
    return op.conv2d(op.relu(op.conv2d(x, deep, padding=1, groups=8)), weight)


def attend(x, k, v):
    return op.batch_matmul(op.softmax(op.batch_matmul(x, k, transpose_b=True)), v)


# name -> program, shapes of its arguments, shape of its result
ANCHORS = {
    "conv2d": (conv(padding=1), {"x": (1, 8, H, W), "weight": (C, 8, 3, 3)}, OUT),
    "1x1": (conv(), {"x": (1, 64, 7, 7), "weight": (65, 64, 1, 1)}, (1, 65, 7, 7)),
    "strided": (
        conv(strides=2, padding=1), {"x": (2, 8, H, W), "weight": (C, 8, 3, 3)}, (2, C, 5, 6),
    ),
    "1x1 strided": (conv(strides=2), {"x": (1, 8, H, W), "weight": (C, 8, 1, 1)}, (1, C, 5, 6)),
    "winograd": (
        conv(padding=1), {"x": (1, 64, 14, 14), "weight": (64, 64, 3, 3)}, (1, 64, 14, 14),
    ),
    "one pixel": (conv(), {"x": (1, 8, 1, 1), "weight": (C, 8, 1, 1)}, (1, C, 1, 1)),
    "depthwise": (
        conv(padding=1, groups=C), {"x": (1, C, H, W), "weight": (C, 1, 3, 3)}, OUT,
    ),
    "pair": (pair, {"x": (1, 8, H, W), "deep": (8, 1, 3, 3), "weight": (C, 8, 1, 1)}, OUT),
    "same 3x3": (conv(padding=1), {"x": (1, C, H, W), "weight": (C, C, 3, 3)}, OUT),
    "same 1x1": (conv(), {"x": (1, 64, 7, 7), "weight": (64, 64, 1, 1)}, (1, 64, 7, 7)),
    "same dense": (op.dense, {"x": (7, 33), "weight": (33, 33)}, (7, 33)),
    "dense": (op.dense, {"x": (7, 33), "weight": (17, 33)}, (7, 17)),
    "rows of dense": (op.dense, {"x": (2, 19, 64), "weight": (48, 64)}, (2, 19, 48)),
    "layer_norm": (
        op.layer_norm, {"x": (2, 19, 64), "gamma_": (64,), "beta_": (64,)}, (2, 19, 64),
    ),
    "rms_norm": (op.rms_norm, {"x": (2, 19, 64), "gamma_": (64,)}, (2, 19, 64)),
    "softmax": (op.softmax, {"x": (2, 19, 50)}, (2, 19, 50)),
    "attention": (attend, {"x": (3, 7, 16), "k": (3, 9, 16), "v": (3, 9, 10)}, (3, 7, 10)),
    "max_pool": (
        lambda x: op.max_pool2d(x, pool_size=3, padding=1), {"x": OUT}, OUT,
    ),
    "mean": (op.global_avg_pool2d, {"x": OUT}, (1, C, 1, 1)),
}  # fmt: skip
CONSTANT = ("weight", "deep", "gamma", "beta", "mean", "var", "gamma_", "beta_", "channel")

ALL_AFTER = [("conv2d", name) for name in AFTER]
ALL_AFTER += [
    (name, "residual after") for name in ANCHORS if not name.startswith(("conv2d", "same"))
]
ALL_AFTER += [(anchor, "norm, scale and shift") for anchor in ("winograd", "dense", "pair")]
CONVS = ("conv2d", "1x1", "winograd")
ALL_BEFORE = [(name, anchor) for anchor in CONVS for name in BEFORE]
ALL_BEFORE += [("gate", "1x1 strided"), ("not zero at zero", "depthwise")]
ALL_BEFORE += [("not zero at zero", "dense"), ("two images", "rows of dense")]


def operands(shape):
    """The shapes of what an op may read beside a value of a shape."""
    axis = 1 if len(shape) == 4 else len(shape) - 1
    along = tuple(n if i == axis else 1 for i, n in enumerate(shape))
    shapes = dict.fromkeys(("gamma", "beta", "mean", "var"), (shape[1],))
    shapes |= {"gate": (shape[0], *along[1:]), "channel": along, "whole": shape, "other": shape}
    ones = tuple(1 for _ in shape)
    return {**shapes, "row": (*ones[1:], shape[-1]), "column": (*shape[:-1], 1), "one": ones}


def names(function):
    return list(function.__code__.co_varnames[: function.__code__.co_argcount])


def case(anchor, after=None, before=None):
    """The program of an anchor with ops after it and before it."""
    compute, shapes, out = ANCHORS[anchor]
    own, (first, *_) = list(shapes), shapes
    post, pre = (
        names(AFTER[after])[1:] if after else [],
        names(BEFORE[before])[1:] if before else [],
    )
    asked = {n: operands(out)[n] for n in post} | {n: operands(shapes[first])[n] for n in pre}

    def program(*args):
        given = dict(zip((*own, *asked), args, strict=True))
        mine = {n: given[n] for n in own}
        if before:
            mine[first] = BEFORE[before](mine[first], *(given[n] for n in pre))
        y = compute(*mine.values())
        return AFTER[after](y, *(given[n] for n in post)) if after else y

    text = ", ".join((*own, *asked))
    made = eval(f"lambda {text}: program({text})", {"program": program})
    sizes = {**shapes, **asked}
    return Case(made, constants=[n for n in sizes if n in CONSTANT], **sizes)


CONV = next(c for c in selfbyoc.BUILTIN if c.name == "conv2d")


def run(anchor, after=None, before=None):
    """One kernel has everything, by its own schedule, and is right."""
    found = run_case(CONV, case(anchor, after, before), composites=selfbyoc.BUILTIN)
    assert_close(found)
    report = selfbyoc.explain(found.mod).report
    assert report.left == {}, report
    (record,) = report.matched
    return record


@pytest.fixture(autouse=True)
def _no_fallback(recwarn):
    yield
    assert not [w for w in recwarn if "default schedule takes over" in str(w.message)]


@pytest.mark.parametrize(("anchor", "after"), ALL_AFTER)
def test_ops_after_a_kernel_join_it(anchor, after):
    run(anchor, after)


@pytest.mark.parametrize(("before", "anchor"), ALL_BEFORE)
def test_ops_before_a_product_join_it(before, anchor):
    run(anchor, before=before)


def test_both_at_once_and_what_they_read_are_arguments():
    record = run("1x1", "residual after", "norm and relu")
    assert [name for name, _, _ in record.args if name.startswith("operand")] == [
        f"operand_{n}" for n in range(6)
    ]
    assert "x" not in [name for name, _, _ in record.args]


def explained(program, constants=(), **shapes):
    weights = {name: np.ones(shapes.pop(name), "float32") for name in constants}
    report = selfbyoc.explain(emit(program, shapes, weights)).report
    told = {}
    for record in (r for r in report.records if r.cause == OUTSIDE):
        told[record.where] = told.get(record.where, "") + record.reason
    return told, [r.ops for r in report.matched]


X, WEIGHT = (1, 8, H, W), (C, 8, 3, 3)


def test_what_others_read_stays_outside_and_says_so():
    def program(x, weight):
        y = op.conv2d(x, weight, padding=1)
        return op.add(op.max_pool2d(op.tanh(y)), op.max_pool2d(y))

    told, _ = explained(program, x=X, weight=WEIGHT)
    assert "tanh after it stays outside: conv2d is also read by max_pool2d_1" in told["tanh"]
    assert "tanh before it stays outside: max_pool2d takes no ops before its own" in told["tanh"]


def test_a_gate_of_the_kernels_own_result_joins_the_next_one():
    def program(x, weight, squeeze, project):
        y = op.conv2d(x, weight, padding=1)
        gate = op.sigmoid(op.conv2d(op.global_avg_pool2d(y), squeeze))
        return op.conv2d(op.multiply(y, gate), project)

    shapes = {"squeeze": (C, C, 1, 1), "project": (5, C, 1, 1)}
    told, kernels = explained(program, x=X, weight=WEIGHT, **shapes)
    assert told == {}
    assert ("multiply", "conv2d_2") in kernels
    found = run_case(CONV, Case(program, x=X, weight=WEIGHT, **shapes), composites=selfbyoc.BUILTIN)
    assert_close(found)


def test_a_larger_result_a_result_of_the_model_and_another_dtype_stay_outside():
    def larger(x, weight, wide):
        return op.add(op.conv2d(x, weight), wide)

    told, _ = explained(larger, x=(1, 8, 1, 1), weight=(C, 8, 1, 1), wide=OUT)
    assert f"it makes float32{list(OUT)} of float32[1, {C}, 1, 1]" in told["add"]

    def log(x, weight):
        return op.log(op.conv2d(x, weight))

    told, _ = explained(log, x=X, weight=WEIGHT)
    assert "log is too long an expression" in told["log"]


@pytest.mark.parametrize(
    ("size", "constants", "told"),
    [
        (7, ("weight",), None),  # groups are lanes: 49 pixels are one row
        (2, ("weight",), "rows of 4 pixels are stored one by one"),
        (7, (), "rows of 7 pixels are stored one by one"),
    ],
)
def test_short_rows_of_a_depthwise_convolution(size, constants, told):
    def program(x, weight):
        y = op.conv2d(x, weight, padding=1, groups=C)
        return op.multiply(y, op.sigmoid(op.tanh(y)))

    shapes = {"x": (1, C, size, size), "weight": (C, 1, 3, 3)}
    why, kernels = explained(program, constants=constants, **shapes)
    if told is not None:
        assert told in why["tanh"]
        assert told in why["multiply"]
        assert kernels == [("conv2d",)]
        return
    assert why == {}
    assert kernels == [("conv2d", "tanh", "sigmoid", "multiply")]
    case = Case(program, constants=constants, **shapes)
    assert_close(run_case(CONV, case))
    assert_close(run_case(CONV, case, target="llvm -mcpu=haswell"))


def test_an_average_of_all_pixels_takes_the_ops_before_it():
    def program(x, channel):
        y = op.multiply(x, op.divide(op.clip(op.add(x, 3.0), a_max=6.0), 6.0))
        return op.sigmoid(op.global_avg_pool2d(op.add(op.sigmoid(y), channel)))

    shapes = {"x": (2, C, 7, 11), "channel": (C, 1, 1)}
    told, kernels = explained(program, **shapes)
    assert told == {}
    assert len(kernels) == 1
    (average,) = [c for c in selfbyoc.BUILTIN if c.name == "global_avg_pool2d"]
    run = run_case(average, Case(program, **shapes))
    assert run.counts == {"global_avg_pool2d": 1}
    assert_close(run)


def test_two_convolutions_share_a_sum():
    def program(x, weight, other):
        return op.relu(op.tanh(op.add(op.conv2d(x, weight), op.conv2d(x, other))))

    told, kernels = explained(program, x=X, weight=WEIGHT, other=WEIGHT)
    assert told == {}
    assert sorted(map(len, kernels)) == [1, 4]


def test_a_pattern_of_ones_own_takes_what_it_says():
    mine = selfbyoc.Composite("mine", lambda x, weight: op.conv2d(x, weight))
    report = selfbyoc.explain(
        emit(lambda x, weight: op.tanh(op.conv2d(x, weight)), {"x": X, "weight": WEIGHT}),
        composites=[mine],
    ).report
    assert report.left == {"tanh": 1}
    assert not [r for r in report.records if r.cause == OUTSIDE]


def test_what_a_pattern_could_name_when_others_in_the_kernel_read_it():
    """A sum next to a product is a residual of the pattern, and is none where the product is read
    once more: when the function is read back, too.
    """

    def step(x, w, r):
        product = op.dense(x, w)
        gate = op.sigmoid(op.add(product, r))
        return op.add(r, op.multiply(gate, product))

    found = run_case(
        CONV, Case(step, x=(3, 16), w=(13, 16), r=(3, 13)), composites=selfbyoc.BUILTIN
    )
    assert_close(found)
    assert found.counts == {"dense": 1}
    (record,) = selfbyoc.explain(found.mod).report.matched
    assert len(record.ops) == 5


def inner_read_again(anchor, again):
    """A program whose prologue is `relu(x + whole)`, of which the sum is read once more."""
    compute, shapes, _ = ANCHORS[anchor]

    def program(x, weight, whole):
        inner = op.add(x, whole)
        outer = op.relu(inner)
        return again(compute, inner, outer, weight)

    (x, weight) = shapes.values()
    return Case(program, x=x, weight=weight, whole=x, constants=["weight"])


AGAIN = {
    "inner": lambda conv, inner, outer, w: op.multiply(op.leaky_relu(conv(outer, w)), inner),
    "outer": lambda conv, inner, outer, w: op.multiply(op.leaky_relu(conv(outer, w)), outer),
    "both": lambda conv, inner, outer, w: op.multiply(op.add(conv(outer, w), inner), outer),
    "residual": lambda conv, inner, outer, w: op.relu(op.add(conv(outer, w), inner)),
}


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("anchor", ["same 3x3", "same 1x1", "winograd", "same dense"])
def test_what_a_prologue_computes_may_be_read_after_the_result(anchor, again):
    """KeyError of an address before: the sum was no tensor of the kernel."""
    found = run_case(CONV, inner_read_again(anchor, AGAIN[again]), composites=selfbyoc.BUILTIN)
    assert_close(found)
    assert sum(found.counts.values()) == 1, found.counts


OTHER_ROLES = {
    "inner as weight": lambda inner, outer: op.dense(outer, inner),
    "outer as weight": lambda inner, outer: op.dense(outer, outer),
    "itself the weight's": lambda inner, outer: op.dense(inner, outer),
    "and a residual": lambda inner, outer: op.add(op.dense(outer, inner), outer),
    "a kernel of an image": lambda inner, outer: op.conv2d(
        op.reshape(outer, shape=(1, 9, 3, 3)), op.reshape(inner, shape=(9, 9, 1, 1))
    ),
}


@pytest.mark.parametrize("role", OTHER_ROLES)
def test_what_a_prologue_computes_may_be_another_argument(role):
    def program(x, whole):
        inner = op.add(x, whole)
        return OTHER_ROLES[role](inner, op.tanh(inner))

    found = run_case(CONV, Case(program, x=(9, 9), whole=(9, 9)), composites=selfbyoc.BUILTIN)
    assert_close(found)
    assert sum(found.counts.values()) == 1, found.counts
