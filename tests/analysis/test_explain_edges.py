"""Odd composites and programs: a record or a typed error, before and after partitioning."""

import re

import pytest

import selfbyoc
from selfbyoc import Composite, either, emit, op
from selfbyoc.errors import CompositeError, InputError, RegistryError

SHAPES = {"x": ((1, 4, 8, 8), "float32"), "w": ((4, 4, 3, 3), "float32")}
BIAS = {"b": ((1, 4, 1, 1), "float32")}


def conv_relu(x, w):
    return op.relu(op.conv2d(x, w))


def only(mod, composite):
    """The one record, which is the same of the partitioned module."""
    (record,) = selfbyoc.explain(mod, composites=[composite]).records
    if record.status != "broken":
        parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
        (again,) = selfbyoc.explain(parted).records
        assert (again.status, again.reason) == (record.status, record.reason)
    return record


@pytest.mark.parametrize("attrs", [{"strides": lambda s: s[5]}, {"groups": lambda n: n > "1"}])
def test_a_predicate_that_raises(attrs):
    mod = emit(conv_relu, SHAPES)
    broken = Composite("broken", lambda x, w: op.relu(op.conv2d(x, w, **attrs)))
    record = only(mod, broken)
    assert (record.status, record.cause) == ("broken", "predicate raised")
    assert f"the predicate on {next(iter(attrs))} raised" in record.reason
    with pytest.raises(CompositeError, match="composite broken: the predicate on"):
        selfbyoc.partition_for_tefuse(mod, composites=[broken])


def test_an_output_that_the_alternative_has_not():
    def pattern(x, w, b):
        conv = op.conv2d(x, w)
        biased = op.bias_add(conv, b)
        return biased, op.relu(either(biased, conv))

    record = only(emit(conv_relu, SHAPES), Composite("two", pattern))
    assert (record.status, record.cause, record.found) == ("missed", "output", "none")
    assert record.wanted == "bias_add(conv2d(x, w), b), an output of the pattern"


def test_an_output_that_the_op_has_not():
    def program(x, w):
        return op.relu(op.split(x, indices_or_sections=2, axis=1)[1])

    record = only(emit(program, SHAPES), Composite("far", lambda x: op.relu(op.split(x)[7])))
    assert record.reason == "at split: wanted output 7 of split, found another of its outputs"


def test_an_op_that_reading_made_up_is_no_root():
    """The bias [1, C, 1, 1] is read with a reshape of ours before it."""
    mod = emit(lambda x, w, b: op.add(op.conv2d(x, w), b), {**SHAPES, **BIAS})
    turn = Composite("reshaped", lambda b: op.reshape(b))
    assert selfbyoc.explain(mod, composites=[turn]).records == ()
    assert selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=[turn])).counts == {}


def test_an_infinite_constant():
    def program(x):
        return op.maximum(x, float("-inf"))

    mod = emit(program, {"x": SHAPES["x"]})
    assert only(mod, Composite("floor", program)).status == "matched"
    other = Composite("ceiling", lambda x: op.maximum(x, float("inf")))
    assert only(mod, other).reason == "at maximum: wanted the constant inf, found -inf"


def test_wrong_questions():
    mod = emit(conv_relu, SHAPES)
    with pytest.raises(RegistryError, match="expected a list of composites, found alone alone"):
        selfbyoc.explain(mod, composites=Composite("alone", conv_relu))
    with pytest.raises(InputError, match="None is no op of this model"):
        selfbyoc.explain(mod).why("relu", None)
    with pytest.raises(InputError, match="not what to_json wrote"):
        selfbyoc.Explanation.from_json("{}")
    with pytest.raises(InputError, match="not what to_json wrote"):
        selfbyoc.Explanation.from_json("no json")


def test_an_op_that_is_read_by_what_is_before_it():
    """add(conv, reshape(b)) is a bias_add; add(x, reshape(b)), cut out without the conv, is not."""

    def program(x, w, b):
        return op.relu(op.add(op.conv2d(x, w), op.reshape(b, shape=(1, 4, 1, 1))))

    mod = emit(program, {**SHAPES, "b": ((4,), "float32")})
    record = only(mod, Composite("epilogue", lambda x, b: op.relu(op.bias_add(x, b))))
    assert (record.status, record.cause) == ("refused", "read by context")
    assert record.reason == ("bias_add is read so because of conv2d, which the group has not")
    whole = Composite("whole", lambda x, w, b: op.relu(op.bias_add(op.conv2d(x, w), b)))
    assert only(mod, whole).status == "matched"


@pytest.mark.parametrize("attrs", [{"padding": "abc"}, {"padding": (1, 2, 3)}, {"dilation": None}])
def test_an_attribute_that_is_no_value(attrs):
    (name, value), *_ = attrs.items()
    told = rf"composite odd: op.conv2d: {name}: expected int .*, found {re.escape(repr(value))}"
    with pytest.raises(CompositeError, match=told):
        Composite("odd", lambda x, w: op.relu(op.conv2d(x, w, **attrs)))


def test_partitioning_twice():
    parted = selfbyoc.partition_for_tefuse(emit(conv_relu, SHAPES))
    with pytest.raises(InputError, match="is partitioned already"):
        selfbyoc.partition_for_tefuse(parted)


def test_the_schedule_of_a_kernel_that_took_more_ops():
    """Its plan is that of the pattern's ops, in a model that has several of them as well."""
    shapes = {"x": ((6, 40), "float32"), "w": ((40, 40), "float32")}

    def program(x, w):
        y = op.exp(op.softmax(op.dense(x, w)))
        return op.exp(op.softmax(op.exp(op.dense(y, w))))

    mod = emit(program, shapes)
    parted = selfbyoc.partition_for_tefuse(mod)
    for found in (selfbyoc.explain(mod), selfbyoc.explain(parted)):
        levels = {(r.composite, r.level) for r in found.report.matched}
        assert levels == {("softmax", "own schedule"), ("dense", "own schedule")}
        assert all(r.plan for r in found.report.matched)
