"""TVM's own fusion: the rules as we name them against what FuseOps does (A50)."""

import pytest

import selfbyoc
from selfbyoc import BUILTIN, op
from selfbyoc.analysis.fusion.generation import road
from selfbyoc.analysis.fusion.rules import (
    AFTER_COMPLEX,
    AFTER_REDUCTION,
    BEFORE_COMPLEX,
    OTHER_READER,
    TWO_COMPLEX,
    broken,
    model_of,
    tvms_fusion,
)
from selfbyoc.analysis.kernels import kernels
from selfbyoc.ir.emit import emit
from selfbyoc.tvm import GENERATION

IMAGE = {"x": ((1, 4, 6, 6), "float32"), "w": ((4, 4, 3, 3), "float32")}


def conv(x, w):
    return op.conv2d(x, w, padding=1)


# A program, how many kernels FuseOps makes of it, and the rule that keeps two of its ops apart.
PROGRAMS = {
    "elementwise": (lambda x: op.tanh(op.relu(x)), 1, ()),
    "injective": (lambda x: op.transpose(op.tanh(x), axes=(0, 2, 3, 1)), 1, ()),
    "into a reduction": (lambda x: op.sum(op.relu(x), axis=(1,)), 1, ()),
    "after a reduction": (lambda x: op.relu(op.sum(x, axis=(1,))), 2, (AFTER_REDUCTION,)),
    "elementwise after a complex op": (lambda x, w: op.tanh(op.relu(conv(x, w))), 1, ()),
    "before a complex op": (lambda x, w: conv(op.relu(x), w), 2, (BEFORE_COMPLEX,)),
    "two complex ops": (lambda x, w: conv(conv(x, w), w), 2, (TWO_COMPLEX,)),
    "with what lies between": (lambda x, w: conv(op.relu(conv(x, w)), w), 2, (TWO_COMPLEX,)),
    "injective after a complex op": (
        lambda x, w: op.transpose(conv(x, w), axes=(0, 2, 3, 1)), 2, (AFTER_COMPLEX,)
    ),
    "a reduction after a complex op": (
        lambda x, w: op.sum(conv(x, w), axis=(1,)), 2, (AFTER_COMPLEX,)
    ),
}  # fmt: skip


def kernels_in(text):
    """How many kernels a fused module has, counted in what TVM prints of it."""
    if GENERATION == "relay":
        return text.count("Primitive=1")
    main = text[text.index("def main(") :]
    return main.count("R.call_tir(") + main.count("cls.fused_")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rules_are_those_of_fuse_ops(name):
    program, kernels, rules = PROGRAMS[name]
    takes = {n: IMAGE[n] for n in program.__code__.co_varnames[: program.__code__.co_argcount]}
    mod = road.fuse(emit(program, takes))
    fused = road.read(mod)
    assert fused.kernels == kernels_in(mod.script()) == kernels
    assert tuple(pair.rule for pair in broken(fused)) == rules


def test_a_value_with_readers_in_two_kernels():
    """relu alone is a kernel: each of the sums could take it, and FuseOps gives it to neither."""

    def program(x):
        inner = op.relu(x)
        return op.sum(inner, axis=(1,)), op.sum(inner, axis=(2,))

    fused = road.read(road.fuse(emit(program, {"x": IMAGE["x"]})))
    assert fused.kernels == 3
    assert [pair.rule for pair in broken(fused)] == [OTHER_READER]


@pytest.mark.parametrize("composite", BUILTIN, ids=lambda c: c.name)
def test_what_the_table_says_is_what_fuse_ops_does(composite):
    found = tvms_fusion(composite)
    if found is None:
        assert all(GENERATION not in case.generations for case in composite.cases)
        return
    case = next(c for c in composite.cases if c.name == found.case and GENERATION in c.generations)
    mod = road.fuse(model_of(composite, case))
    assert found.kernels == kernels_in(mod.script())
    assert bool(found.broken) == (found.kernels > 1)
    ours = selfbyoc.partition_for_tefuse(
        model_of(composite, case), composites=[composite], pack=False
    )
    assert len(kernels(ours)) == 1
    assert selfbyoc.report(ours).left == {}


def test_several_rules_at_once():
    """An inception block breaks two: its convolutions in a row, and the concatenation."""
    (inception,) = (c for c in BUILTIN if c.name == "inception")
    found = tvms_fusion(inception)
    assert [pair.rule for pair in found.broken] == [TWO_COMPLEX, AFTER_COMPLEX]
    first = found.broken[0]
    assert (first.heaviest.name, first.producer.name, first.consumer.name) == (
        "conv2d", "relu", "conv2d",
    )  # fmt: skip
